from dataclasses import replace

import pytest
import torch

from ace_studio.engine.improve import descent
from ace_studio.engine.improve.descent import IntegerGrid, Quadratic, descend
from ace_studio.engine.quantize.affine import affine_grid, symmetric_grid
from tests.engine.improve.models import seeded

OUTPUTS, INPUTS, GROUP = 24, 160, 40


def never():
    return False


def case(rows=400, *, noise=0.0):
    """A weight, inputs whose values go together, and their float results, which are those of other inputs if noisy."""
    weight = torch.randn(OUTPUTS, INPUTS, generator=seeded(0))
    mixing = torch.randn(INPUTS, INPUTS, generator=seeded(1)) * torch.linspace(1.0, 0.02, INPUTS)[:, None]
    x = torch.randn(rows, INPUTS, generator=seeded(2)) @ mixing
    return weight, x + noise * torch.randn(x.shape, generator=seeded(3)), x @ weight.t()


def on_grid(weight, *, bits=4):
    """Groups of 40 neighbours at 4 bits, whole rows at 8."""
    groups = weight.reshape(-1, GROUP if bits == 4 else INPUTS)
    is_affine = bits == 4
    grid = (
        affine_grid(groups.amin(1), groups.amax(1), bits=4, axis=0)
        if is_affine
        else symmetric_grid(groups.abs().amax(1), bits=8, axis=0)
    )
    integers = grid.quantize(groups)
    ends = (integers == grid.low) | (integers == grid.high)
    scale, zero_point, is_fixed = (
        one.reshape(len(groups), -1).expand_as(groups).reshape(weight.shape)
        for one in (grid.scale, grid.zero_point, ends)
    )
    edges = range(0, INPUTS + 1, groups.shape[1])
    nearest = grid.round_trip(groups).reshape(weight.shape)
    return nearest, IntegerGrid(scale, zero_point, is_fixed, grid.low, grid.high, edges)


def squared_error(weight, x, y):
    return float((x @ weight.t() - y).square().sum(1).mean())


@pytest.mark.parametrize("bits", [4, 8])
def test_the_results_come_much_closer_than_with_the_nearest_values(bits):
    weight, x, y = case()
    nearest, grid = on_grid(weight, bits=bits)
    found = descend(nearest, Quadratic.of(x, y, near=weight), grid, never)
    assert squared_error(found, x, y) < 0.5 * squared_error(nearest, x, y)


def test_the_error_of_the_quadratic_is_that_of_the_results():
    weight, x, y = case()
    nearest, _ = on_grid(weight)
    plain = Quadratic(x.t() @ x / len(x), y.t() @ x / len(x))
    constant = float(y.square().sum(1).mean())
    assert plain.error(nearest) + constant == pytest.approx(squared_error(nearest, x, y), rel=1e-3)


def test_every_sweep_makes_the_error_less(monkeypatch):
    weight, x, y = case()
    nearest, grid = on_grid(weight)
    quadratic, errors = Quadratic.of(x, y, near=weight), []
    for sweeps in range(4):
        monkeypatch.setattr(descent, "_SWEEPS", sweeps)
        errors.append(quadratic.error(descend(nearest, quadratic, grid, never)))
    assert errors == sorted(errors, reverse=True)
    assert len(set(errors)) == 4


@pytest.mark.parametrize("bits", [4, 8])
def test_a_target_finds_the_same_grid_again(bits):
    """Also after the scales were changed; the ends of every grid keep their integers."""
    weight, x, y = case()
    nearest, grid = on_grid(weight, bits=bits)
    found = descend(nearest, Quadratic.of(x, y, near=weight), grid, never)
    again, own = on_grid(found, bits=bits)
    torch.testing.assert_close(again, found, rtol=1e-4, atol=1e-5)
    assert torch.equal(own.zero_point, grid.zero_point)
    assert bool(own.is_fixed[grid.is_fixed].all())
    assert not torch.allclose(own.scale, grid.scale, rtol=1e-3)


def test_scales_stay_where_rows_share_them():
    weight, x, y = case()
    nearest, grid = on_grid(weight)
    found = descend(nearest, Quadratic.of(x, y, near=weight), replace(grid, edges=()), never)
    integers = found / grid.scale + grid.zero_point
    torch.testing.assert_close(integers, integers.round(), rtol=0.0, atol=1e-3)
    assert torch.equal(found[grid.is_fixed], nearest[grid.is_fixed])


def test_weights_stay_near_the_float_ones_if_few_rows_were_seen():
    """Noise in three rows says nothing; held-out results must not get worse by it than with the nearest values."""
    weight, x, y = case(3, noise=0.5)
    nearest, grid = on_grid(weight)
    found = descend(nearest, Quadratic.of(x, y, near=weight), grid, never)
    _, others, wanted = case(500)
    assert squared_error(found, others, wanted) < 1.05 * squared_error(nearest, others, wanted)


def test_inputs_that_mend_an_error_before_the_op_are_used():
    """The inputs are wrong by a factor of 0.9, as after rounded ops before; the weight makes up for it."""
    weight, x, y = case()
    nearest, grid = on_grid(weight)
    found = descend(nearest, Quadratic.of(0.9 * x, y, near=weight), grid, never)
    assert squared_error(found, 0.9 * x, y) < 0.2 * squared_error(nearest, 0.9 * x, y)


def test_it_gives_what_it_has_when_the_time_is_up():
    weight, x, y = case()
    nearest, grid = on_grid(weight)
    quadratic, looks = Quadratic.of(x, y, near=weight), iter([False, True])
    found = descend(nearest, quadratic, grid, lambda: next(looks))
    assert not torch.equal(found[:, :64], nearest[:, :64])
    assert torch.equal(found[:, 64:], nearest[:, 64:])
    assert quadratic.error(found) < quadratic.error(nearest)
