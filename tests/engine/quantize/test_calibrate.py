import pytest
import torch
from torch import nn

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.torch_private.exporting import export_program
from ace_studio.records.recipes.recipe import Observer


def test_ranges_hold_every_value_of_every_example(mlp):
    graph_module = flat_graph(mlp.exported)
    examples = [[torch.full((2, 16), value)] for value in (-3.0, 5.0)]
    ranges = observe_ranges(graph_module, examples)
    (name, *_) = ranges
    assert (ranges[name].low, ranges[name].high, ranges[name].examples) == (-3.0, 5.0, 2)
    assert ranges["relu"].low == 0.0


def test_a_percentile_cuts_outliers_off(mlp):
    graph_module = flat_graph(mlp.exported)
    values = torch.rand(64, 16, generator=torch.Generator().manual_seed(0))
    values[0, 0] = 1000.0
    (name, *_) = observe_ranges(graph_module, [[values]])
    assert observe_ranges(graph_module, [[values]])[name].high == 1000.0
    choice = RangeChoice(Observer.PERCENTILE, percentile=99.0)
    assert 0.9 < observe_ranges(graph_module, [[values]], choice=choice)[name].high < 1.1


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_the_range_is_that_of_the_finite_elements(mlp, number):
    graph_module = flat_graph(mlp.exported)
    broken = torch.full((2, 16), 3.0)
    broken[0, 0] = number
    (name, *others) = ranges = observe_ranges(graph_module, [[broken], [torch.full((2, 16), number)]])
    assert (ranges[name].low, ranges[name].high, ranges[name].examples) == (3.0, 3.0, 1)
    assert others == list(observe_ranges(graph_module, [[torch.ones(2, 16)]]))[1:]
    assert observe_ranges(graph_module, [[torch.full((2, 16), number)], [torch.ones(0, 16)]]).get(name) is None


def _exported(module, *inputs):
    return export_program(module.eval(), inputs, {}, dynamic_shapes=None, strict=False)


class MaskedScores(nn.Module):
    """Scores with minus infinity where x is large, all of it in some rows; x [n, 4]."""

    def __init__(self, *, is_cleaned):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)
        self.is_cleaned = is_cleaned

    def forward(self, x):
        shares = self.first(x).masked_fill(x > 0.5, float("-inf")).softmax(-1)
        return self.second(torch.nan_to_num(shares) if self.is_cleaned else shares)


@pytest.mark.parametrize("is_cleaned", [True, False])
def test_a_mask_of_minus_infinity_has_no_range(is_cleaned):
    x = torch.tensor([[0.0, 1.0, 0.2, 3.0], [0.1, 0.2, 0.3, 0.4]])
    ranges = observe_ranges(flat_graph(_exported(MaskedScores(is_cleaned=is_cleaned), x)), [[x]])
    assert "masked_fill" not in ranges
    assert {"x", "linear", "softmax", "linear_1"} <= set(ranges)


def test_nan_of_a_row_that_is_masked_whole_has_no_range():
    x = torch.ones(2, 4)
    assert "linear_1" in observe_ranges(flat_graph(_exported(MaskedScores(is_cleaned=True), x)), [[x]])
    assert "softmax" not in observe_ranges(flat_graph(_exported(MaskedScores(is_cleaned=False), x)), [[x]])


def test_what_follows_the_last_example_is_told(mlp):
    told = []
    observe_ranges(flat_graph(mlp.exported), [[torch.zeros(2, 16)]], reporter=Reporter(told.append))
    assert [(one.detail, one.fraction) for one in told] == [("example 1 of 1", 0.0), ("ranges of the values", None)]
