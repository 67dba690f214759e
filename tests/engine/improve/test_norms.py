import torch

from ace_studio.engine.improve import with_changed_weights
from ace_studio.engine.improve.job import WeightEditor
from ace_studio.engine.improve.norms import find_norm_sites
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import examples_of, improved_by, outputs_of


def test_a_norm_that_linear_layers_alone_read_is_found_with_its_readers(block):
    (site,) = find_norm_sites(WeightEditor(block))
    assert {reader.weight for reader in site.readers} == {"up.weight", "gate.weight"}
    assert set(site.parameters) == {"norm.weight", "norm.bias"}


def test_dividing_the_norm_and_scaling_its_readers_changes_nothing(block):
    editor = WeightEditor(block)
    (site,) = find_norm_sites(editor)
    x = torch.randn(5, 32)
    norm = {name.removeprefix("norm."): editor.tensor(name) for name in site.parameters}
    before = torch.nn.functional.layer_norm(x, (32,), **norm) @ editor.tensor("up.weight").t()
    site.divide(editor, torch.linspace(0.5, 2.0, 32))
    norm = {name.removeprefix("norm."): editor.tensor(name) for name in site.parameters}
    after = torch.nn.functional.layer_norm(x, (32,), **norm) @ editor.tensor("up.weight").t()
    torch.testing.assert_close(after, before)


def test_convolutions_have_no_such_norm(convs):
    assert find_norm_sites(WeightEditor(convs)) == []


def test_smoothquant_helps_outlier_channels_and_leaves_the_float_model_alone(block):
    assert [len(site.readers) for site in find_norm_sites(WeightEditor(block))] == [2]
    examples = examples_of(6, 32)
    found = improved_by(block, Plan(default=Precision.INT8_STATIC), [ImproveMethod.SMOOTHQUANT], examples)
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 6.0
    changed = with_changed_weights(block, found.changes)
    torch.testing.assert_close(outputs_of(changed, examples[0]), outputs_of(block, examples[0]), rtol=1e-3, atol=1e-4)


def test_awq_helps_outlier_channels_at_four_bits(block):
    found = improved_by(
        block, Plan(default=Precision.INT4_WEIGHT, group_size=0), [ImproveMethod.AWQ], examples_of(6, 32)
    )
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 2.0
