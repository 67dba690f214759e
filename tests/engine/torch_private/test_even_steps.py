"""Evenly spaced numbers of a dynamic count keep that size free."""

import pytest
import torch
from torch import nn

from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program


class Steps(nn.Module):
    def __init__(self, start, end, **options):
        super().__init__()
        self.start, self.end, self.options = start, end, options

    def forward(self, x):
        end = x.shape[-1] - 1 if self.end is None else self.end
        return x * torch.linspace(self.start, end, x.shape[-1], **self.options)


class Warp(nn.Module):
    def __init__(self, align_corners):
        super().__init__()
        self.align_corners = align_corners

    def forward(self, theta, x):
        grid = nn.functional.affine_grid(theta, x.shape, align_corners=self.align_corners)
        return grid, nn.functional.grid_sample(x, grid, align_corners=False)


def _export(module, *args):
    """Every dimension of the last input is dynamic, of the others the first."""
    free = [*([1] * (len(args) - 1)), args[-1].dim()]
    shapes = tuple(dict.fromkeys(range(count), DYNAMIC) for count in free)
    with torch.no_grad():
        return export_program(module.eval(), args, {}, dynamic_shapes=shapes, strict=False).module()


@pytest.mark.parametrize("bounds", [(-1, 1), (0.0, 17.0), (2.1, -3.3)])
def test_the_count_of_linspace_stays_free(bounds):
    module = Steps(*bounds)
    exported = _export(module, torch.ones(2, 9))
    for count in (1, 2, 5, 8, 50, 513):
        assert torch.allclose(exported(torch.ones(3, count)), module(torch.ones(3, count)), rtol=1e-6, atol=1e-6)


def test_whole_numbers_are_exact_so_that_rounding_them_down_gives_the_same():
    module = Steps(0, None)
    exported = _export(module, torch.ones(1, 9))
    for count in (2, 50, 84, 1000):
        assert torch.equal(exported(torch.ones(1, count)), torch.arange(count, dtype=torch.float32)[None])


def test_linspace_of_integers_and_of_a_fixed_count_is_left_to_torch():
    class Fixed(nn.Module):
        def forward(self, x):
            return x.sum() + torch.linspace(0, 1, 4), torch.linspace(0, 6, 4, dtype=torch.int64)

    floats, integers = _export(Fixed(), torch.zeros(2))(torch.zeros(3))
    assert torch.equal(floats, torch.linspace(0, 1, 4))
    assert integers.tolist() == [0, 2, 4, 6]


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid")  # torch warns of one pixel
@pytest.mark.parametrize(
    ("align_corners", "spatial"),
    [
        (True, (7, 9)),
        (False, (4, 5, 6)),
        pytest.param(False, (7, 9), marks=[pytest.mark.full]),
        pytest.param(True, (4, 5, 6), marks=[pytest.mark.full]),
    ],
)
def test_the_sizes_of_an_affine_grid_stay_free(align_corners, spatial):
    module, n = Warp(align_corners), len(spatial)
    exported = _export(module, torch.randn(2, n, n + 1), torch.randn(2, 3, *spatial))
    for batch, sizes in ((2, spatial), (1, (12, 3, 8)[:n]), (4, (1, 5, 1)[:n])):
        given = torch.randn(batch, n, n + 1), torch.randn(batch, 3, *sizes)
        for ours, own in zip(exported(*given), module(*given), strict=True):
            assert torch.allclose(ours, own, atol=1e-4)


def test_torch_has_its_own_functions_again_after_the_trace():
    before = torch.linspace, nn.functional.affine_grid
    _export(Steps(0, 1), torch.ones(2, 9))
    assert (torch.linspace, nn.functional.affine_grid) == before
