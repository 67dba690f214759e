"""Ranges from values: each observer does what it is for, in whatever order and sizes the values come."""

import operator

import pytest
import torch
from torch import fx

from ace_studio.engine.quantize.affine import affine_grid, symmetric_grid
from ace_studio.engine.quantize.observers import RangeChoice, ValueObserver, write_out_range_searches
from ace_studio.engine.quantize.pt2e import is_torchao_installed
from ace_studio.records.recipes.plan import ActivationGrid
from ace_studio.records.recipes.recipe import Observer


def _seen(values, observer, *, grid=ActivationGrid.AFFINE, parts=1, percentile=99.99):
    one = ValueObserver(RangeChoice(observer, percentile=percentile))
    for part in values.chunk(parts):
        one.update(part)
    return one.range(grid)


def _normal(count=20_000, seed=0):
    return torch.randn(count, generator=torch.Generator().manual_seed(seed))


def _with_outlier(size):
    values = _normal()
    values[7] = size
    return values


def _error(values, found, grid=ActivationGrid.AFFINE):
    low, high = torch.tensor(found.low), torch.tensor(found.high)
    made = affine_grid(low, high) if grid is ActivationGrid.AFFINE else symmetric_grid(high)
    return float((made.round_trip(values) - values).square().mean())


def test_min_max_holds_everything():
    values = _with_outlier(60.0)
    found = _seen(values, Observer.MIN_MAX, parts=3)
    assert (found.low, found.high, found.examples) == (float(values.min()), 60.0, 3)


def test_a_percentile_leaves_an_outlier_out():
    found = _seen(_with_outlier(60.0), Observer.PERCENTILE, percentile=99.9)
    assert 2.9 < found.high < 3.9
    assert -3.9 < found.low < -2.9


def test_a_percentile_of_a_hundred_is_min_max():
    values = _normal()
    found = _seen(values, Observer.PERCENTILE, percentile=100.0)
    assert found.low == pytest.approx(float(values.min()), abs=0.01)
    assert found.high == pytest.approx(float(values.max()), abs=0.01)


@pytest.mark.parametrize("grid", list(ActivationGrid))
@pytest.mark.parametrize("values", [_with_outlier(20.0), _normal().relu(), _normal().abs() + 1.0, -_normal().abs()])
def test_the_mse_range_is_better_than_min_max_and_as_good_as_any_shrunken_one(values, grid):
    best, widest = _seen(values, Observer.MSE, grid=grid), _seen(values, Observer.MIN_MAX, grid=grid)
    assert _error(values, best, grid) <= _error(values, widest, grid) * 1.001
    for share in (0.3, 0.5, 0.7, 0.9):
        shrunken = type(widest)(widest.low * share, widest.high * share, 1)
        assert _error(values, best, grid) <= _error(values, shrunken, grid) * 1.02


def test_entropy_clips_a_long_tail_and_keeps_the_bulk():
    found = _seen(_with_outlier(40.0), Observer.ENTROPY)
    assert 2.0 < found.high < 30.0


def test_entropy_clips_nothing_of_even_values():
    values = torch.linspace(-1.0, 1.0, 50_001)
    found = _seen(values, Observer.ENTROPY)
    assert found.high > 0.9
    assert found.low < -0.9


@pytest.mark.parametrize("observer", list(Observer))
def test_the_order_and_the_sizes_of_the_examples_do_not_matter(observer):
    values = _with_outlier(33.0)
    together, apart = _seen(values, observer), _seen(values.flip(0), observer, parts=8)
    assert (together.low, together.high) == pytest.approx((apart.low, apart.high), rel=0.05)


@pytest.mark.parametrize("observer", list(Observer))
def test_a_value_that_is_always_zero_has_a_range_of_nothing(observer):
    found = _seen(torch.zeros(50), observer)
    assert (found.low, found.high) == (0.0, 0.0)


@pytest.mark.parametrize("observer", list(Observer))
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e20])
def test_ranges_scale_with_the_values(observer, scale):
    found, unit = _seen(_normal() * scale, observer), _seen(_normal(), observer)
    assert found.high / scale == pytest.approx(unit.high, rel=0.15)  # bins lie elsewhere


@pytest.mark.parametrize("observer", list(Observer))
@pytest.mark.parametrize("grid", list(ActivationGrid))
def test_a_mask_of_the_most_negative_number_has_a_range(observer, grid):
    values = _normal()
    values[::3] = torch.finfo(torch.float32).min
    found = _seen(values, observer, grid=grid, parts=2)
    assert found.low < -1e38
    assert grid is ActivationGrid.SYMMETRIC or 0.0 < found.high < 10.0


def test_a_symmetric_range_lies_around_zero():
    for observer in Observer:
        found = _seen(_normal() - 1.0, observer, grid=ActivationGrid.SYMMETRIC)
        assert found.low == -found.high


@pytest.mark.parametrize("observer", Observer)
def test_what_is_not_finite_has_no_part_in_a_range(observer):
    values = _normal()
    odd = torch.cat([values, torch.tensor([float("nan"), float("inf"), -float("inf")])])
    assert _seen(odd, observer) == _seen(values, observer)
    only = ValueObserver(RangeChoice(observer))
    only.update(odd[-3:])
    only.update(values[:0])
    assert not only.has_range


def test_without_values_there_is_no_range():
    with pytest.raises(ValueError, match="nothing was observed"):
        ValueObserver(RangeChoice()).range()
    with pytest.raises(ValueError, match="percentile"):
        RangeChoice(percentile=20.0)


pytestmark = pytest.mark.skipif(not is_torchao_installed(), reason="needs torchao")


def searching_graph() -> fx.GraphModule:
    """Gives scale and zero point of its input, as torchao's dynamic quantization finds them."""
    import torchao.quantization.pt2e.quantize_pt2e  # noqa: F401 - registers the operators

    graph = fx.Graph()
    x = graph.placeholder("x")
    search = torch.ops.quantized_decomposed.choose_qparams.tensor
    found = graph.call_function(search, (x, 0, 255, 2.0**-12, torch.uint8))
    graph.output(tuple(graph.call_function(operator.getitem, (found, at)) for at in (0, 1)))
    return fx.GraphModule({}, graph)


@pytest.mark.parametrize("bounds", [(-1.0, 3.0), (2.0, 3.0), (-3.0, -2.0), (0.0, 0.0)])
def test_the_search_that_is_written_out_finds_a_grid_that_has_zero_on_it(bounds):
    graph_module = searching_graph()
    assert write_out_range_searches(graph_module) == 1
    scale, zero_point = graph_module(torch.linspace(*bounds, 10))
    if bounds == (0.0, 0.0):
        assert float(scale) == 2.0**-12
        return
    grid = affine_grid(*map(torch.tensor, bounds))
    torch.testing.assert_close(scale.float(), grid.scale)
    assert int(zero_point) == int(grid.zero_point)


def test_a_graph_without_searches_is_left_alone():
    graph = fx.Graph()
    graph.output(graph.call_function(torch.ops.aten.relu.default, (graph.placeholder("x"),)))
    assert write_out_range_searches(fx.GraphModule({}, graph)) == 0


def test_a_percentile_cuts_the_same_share_off_both_ends():
    found = _seen(torch.linspace(-1.0, 3.0, 20_001), Observer.PERCENTILE, percentile=90.0)
    assert (found.low, found.high) == pytest.approx((-0.8, 2.8), abs=0.01)
