import torch

from ace_studio.engine.improve import with_changed_weights
from ace_studio.engine.improve.job import WeightEditor
from ace_studio.engine.improve.norm_sites import find_norm_sites
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import examples_of, improved_by, outputs_of


def test_smoothquant_helps_outlier_channels_and_leaves_the_float_model_alone(block):
    assert [len(site.readers) for site in find_norm_sites(WeightEditor(block))] == [2]
    examples = examples_of(6, 32)
    found = improved_by(block, Plan(default=Precision.INT8_STATIC), [ImproveMethod.SMOOTHQUANT], examples)
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 6.0
    changed = with_changed_weights(block, found.changes)
    torch.testing.assert_close(outputs_of(changed, examples[0]), outputs_of(block, examples[0]), rtol=1e-3, atol=1e-4)
