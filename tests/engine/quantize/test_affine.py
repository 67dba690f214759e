"""Grids: what they cover, that zero is on them, and how far off they may be."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ace_studio.engine.quantize.affine import InvalidRange, affine_grid, affine_scale, symmetric_grid, weight_grid

bounds = st.floats(-1e4, 1e4, width=32, allow_subnormal=False)


@given(bounds, bounds, st.sampled_from([4, 8]), st.booleans())
def test_zero_is_exactly_representable_for_any_range(one, other, bits, is_signed):
    low, high = torch.tensor(min(one, other)), torch.tensor(max(one, other))
    grid = affine_grid(low, high, bits=bits, is_signed=is_signed)
    assert grid.round_trip(torch.zeros(1)).item() == 0.0
    assert grid.low <= grid.zero_point <= grid.high


@given(bounds, bounds)
def test_a_value_inside_the_range_is_off_by_at_most_one_step(one, other):
    low, high = torch.tensor(min(one, other, 0.0)), torch.tensor(max(one, other, 0.0))
    grid = affine_grid(low, high)
    values = torch.linspace(float(low), float(high), 101)
    tolerance = grid.scale * 1.01  # half a scale of rounding, half of the zero point's shift at the ends
    assert bool(((grid.round_trip(values) - values).abs() <= tolerance).all())


def test_a_value_outside_the_range_is_clipped_to_its_end():
    grid = affine_grid(torch.tensor(-1.0), torch.tensor(1.0))
    assert grid.round_trip(torch.tensor([50.0, -50.0])).abs().max() < 1.01


def test_a_range_on_one_side_of_zero_is_widened_to_zero():
    assert affine_scale(torch.tensor(2.0), torch.tensor(3.0), bits=8).item() == pytest.approx(3.0 / 255)


def test_a_symmetric_grid_mirrors_positive_and_negative_values():
    grid = symmetric_grid(torch.tensor(3.0))
    values = torch.linspace(-3, 3, 41)
    assert torch.equal(grid.quantize(values), -grid.quantize(-values))
    assert grid.dtype is torch.int8
    assert grid.quantize(torch.tensor([-100.0])).item() == -127


def test_a_weight_gets_one_step_per_output_channel():
    weight = torch.tensor([[1.0, -0.5], [100.0, 3.0]])
    grid = weight_grid(weight)
    assert grid.scale.tolist() == pytest.approx([1.0 / 127, 100.0 / 127])
    assert (grid.round_trip(weight) - weight).abs()[0].max() <= grid.scale[0] / 2 * 1.01


def test_a_channel_of_zeros_stays_zero():
    grid = weight_grid(torch.zeros(2, 3))
    assert torch.equal(grid.round_trip(torch.zeros(2, 3)), torch.zeros(2, 3))


@pytest.mark.parametrize(("low", "high"), [(1.0, -1.0), (float("nan"), 1.0), (0.0, float("inf"))])
def test_a_range_that_is_none_is_refused(low, high):
    with pytest.raises(InvalidRange):
        affine_grid(torch.tensor(low), torch.tensor(high))
