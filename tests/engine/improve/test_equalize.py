import pytest
import torch
from torch import nn

from ace_studio.engine.improve import with_changed_weights
from ace_studio.engine.improve.equalize import find_pairs
from ace_studio.engine.improve.job import WeightEditor
from ace_studio.records.recipes.plan import Plan, Precision, WeightGranularity
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import captured_of, examples_of, improved_by, outputs_of


def test_equalisation_finds_pairs_through_norms_and_depthwise_layers(convs):
    pairs = find_pairs(WeightEditor(convs))
    assert [(pair.first.op_id, pair.second.op_id) for pair in pairs] == [
        ("conv2d", "conv2d_1"),
        ("conv2d_1", "conv2d_2"),
    ]


@pytest.mark.parametrize("granularity", list(WeightGranularity))
def test_equalisation_helps_uneven_channels_and_leaves_the_float_model_alone(convs, granularity):
    plan = Plan(default=Precision.INT8_STATIC, weights=granularity)
    examples = examples_of(6, 3, 12, 12)
    found = improved_by(convs, plan, [ImproveMethod.EQUALIZE], examples)
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 3.0
    changed = with_changed_weights(convs, found.changes)
    torch.testing.assert_close(outputs_of(changed, examples[0]), outputs_of(convs, examples[0]), rtol=1e-3, atol=1e-4)
    assert changed.module is convs.module


class NormBehindReLU(nn.Module):
    """A batch norm that no convolution can take in, padding, pooling, and a convolution."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(2, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3)
        with torch.no_grad():
            sizes = torch.logspace(-1.5, 1.5, 8)
            self.norm.weight.copy_(sizes)
            self.norm.bias.copy_(sizes / 2)
            self.second.weight.div_(sizes[None, :, None, None])

    def forward(self, x):
        x = nn.functional.pad(self.norm(torch.relu(self.first(x))), (1, 1, 1, 1))
        return self.second(nn.functional.max_pool2d(x, 2)).mean((2, 3))


def test_equalisation_works_from_a_norm_that_stands_alone():
    captured = captured_of(NormBehindReLU, 2, 12, 12)
    examples = examples_of(5, 2, 12, 12)
    found = improved_by(captured, Plan(default=Precision.INT8_STATIC), [ImproveMethod.EQUALIZE], examples)
    assert found.reports[0].kept
    assert found.reports[0].after_db > found.reports[0].before_db + 3.0
    changed = with_changed_weights(captured, found.changes)
    torch.testing.assert_close(
        outputs_of(changed, examples[0]), outputs_of(captured, examples[0]), rtol=1e-3, atol=1e-4
    )


def test_equalisation_works_where_nothing_stands_between_a_norm_and_the_next_layer():
    make = lambda: nn.Sequential(nn.Conv2d(2, 8, 1), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 1), nn.Flatten())  # noqa: E731
    captured = captured_of(make, 2, 5, 5)
    plan = Plan(default=Precision.INT8_STATIC)
    (report,) = improved_by(captured, plan, [ImproveMethod.EQUALIZE], examples_of(5, 2, 5, 5)).reports
    assert report.after_db is not None
