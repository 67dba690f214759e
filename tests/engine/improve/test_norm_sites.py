import torch

from ace_studio.engine.improve.job import WeightEditor
from ace_studio.engine.improve.norm_sites import find_norm_sites


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
