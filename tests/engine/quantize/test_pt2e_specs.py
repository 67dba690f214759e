"""The grids that torchao's flow gets are those of the simulation, signed or not."""

import pytest
import torch

from ace_studio.engine.quantize.fake_quantize import activation_grid
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.engine.quantize.pt2e_specs import SCALE_OF_ZEROS, SMALLEST_SIGNED_SCALE, scale_and_zero_point
from ace_studio.records.recipes.plan import ActivationGrid, Scheme

RANGES = [(-1.0, 3.0), (0.0, 6.0), (0.5, 2.0), (-4.0, -1.0), (-2.0, 2.0)]


@pytest.mark.parametrize("is_signed", [True, False])
@pytest.mark.parametrize("grid", list(ActivationGrid))
@pytest.mark.parametrize("bounds", RANGES)
def test_both_signs_round_as_the_simulation_does(bounds, grid, is_signed):
    scale, zero_point = scale_and_zero_point(ValueRange(*bounds, examples=1), grid, is_signed=is_signed)
    low, high = (-128, 127) if is_signed else (0, 255)
    values = torch.linspace(*bounds, 99)
    rounded = (torch.clamp(torch.round(values / scale) + zero_point, low, high) - zero_point) * scale
    expected = activation_grid(*map(torch.tensor, bounds), Scheme(activations=grid)).round_trip(values)
    torch.testing.assert_close(rounded, expected)


@pytest.mark.parametrize("is_signed", [True, False])
@pytest.mark.parametrize("grid", list(ActivationGrid))
def test_what_was_always_zero_keeps_a_step(grid, is_signed):
    assert scale_and_zero_point(ValueRange(0.0, 0.0, 1), grid, is_signed=is_signed) == (SCALE_OF_ZEROS, 0)


def test_only_signed_steps_have_an_end():
    tiny = ValueRange(-1e-9, 1e-9, 1)
    assert scale_and_zero_point(tiny, ActivationGrid.AFFINE, is_signed=True)[0] == SMALLEST_SIGNED_SCALE
    assert scale_and_zero_point(tiny, ActivationGrid.AFFINE, is_signed=False)[0] < 1e-10
