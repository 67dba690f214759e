"""Rounding a value to the grid of a precision and back, in float32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.ops.roles import WeightAxes
from ace_studio.engine.quantize.affine import AffineGrid, affine_grid, symmetric_grid
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.records.processor import int8_weight_bits
from ace_studio.records.recipes.plan import ActivationGrid, Precision, Scheme, WeightGranularity

_WEIGHT_BITS = {Precision.INT8_WEIGHT: 8, Precision.INT4_WEIGHT: 4}
_FP8 = torch.float8_e4m3fn
_LARGEST_FP8 = 448.0


def cast_round_trip(value: Any, dtype: torch.dtype) -> Any:
    """A float32 tensor rounded to a 16-bit type; everything else as it is."""
    if isinstance(value, Tensor) and value.dtype is torch.float32:
        return value.to(dtype).to(torch.float32)
    return value


def activation_grid(low: Tensor, high: Tensor, scheme: Scheme) -> AffineGrid:
    """The 8-bit grid of a value that lies in [low, high]: unsigned affine, or symmetric around 0.

    Shapes: low, high [] -> a grid per tensor. Raises: InvalidRange if a bound is not finite.
    """
    if scheme.activations is ActivationGrid.SYMMETRIC:
        return symmetric_grid(torch.maximum(low.abs(), high.abs()))
    return affine_grid(low, high)


def round_activation(value: Tensor, *, precision: Precision, scheme: Scheme, known: ValueRange | None) -> Tensor:
    """A factor of a product as an op at ``precision`` reads it.

    int8-static takes the ``known`` range and clips what lies outside; int8-dynamic takes the range of the value itself;
    fp8 takes one scale per tensor; other precisions leave it as it is.
    """
    if precision is Precision.FP8:
        return _fp8_round_trip(value, value.abs().amax())
    if precision not in (Precision.INT8_STATIC, Precision.INT8_DYNAMIC):
        return value
    wide = value.float()
    if known is None:
        low, high = wide.aminmax()
    else:
        low, high = (torch.tensor(bound, device=value.device) for bound in (known.low, known.high))
    return activation_grid(low, high, scheme).round_trip(wide).to(value.dtype)


def round_weight(weight: Tensor, axes: WeightAxes, *, precision: Precision, scheme: Scheme) -> Tensor:
    """A stored weight as an op at ``precision`` holds it.

    int8-static and int8-dynamic: symmetric, a scale per output channel or one for all, in `int8_weight_bits`.
    int8-weight: symmetric, int4-weight: affine, both in groups of ``scheme.group_size`` neighbours along the inputs of
    a matrix, and per channel of anything else.
    fp8: a scale per output channel. Shapes: weight as stored -> the same.
    """
    if precision in _WEIGHT_BITS:
        return _round_groups(weight, axes, bits=_WEIGHT_BITS[precision], group_size=scheme.group_size)
    others = [dim for dim in range(weight.dim()) if dim != axes.output]
    if precision is Precision.FP8:
        return _fp8_round_trip(weight, weight.abs().amax(others, keepdim=True))
    bound = weight.abs().float()
    is_per_channel = scheme.weights is WeightGranularity.PER_CHANNEL
    bound = bound.amax(others) if is_per_channel and others else bound.amax()
    grid = symmetric_grid(bound, bits=int8_weight_bits(), axis=axes.output if is_per_channel else None)
    return grid.round_trip(weight.float()).to(weight.dtype)


def round_rows(picked: Tensor) -> Tensor:
    """Rows picked from a table, each on its own symmetric 8-bit grid, which is that of the table's row.

    Shapes: picked [..., width] -> the same.
    """
    rows = picked.float().reshape(-1, picked.shape[-1])
    return symmetric_grid(rows.abs().amax(1), axis=0).round_trip(rows).reshape(picked.shape).to(picked.dtype)


def _round_groups(weight: Tensor, axes: WeightAxes, *, bits: int, group_size: int) -> Tensor:
    """Round each group of neighbours to its own grid; a last, shorter group has one too."""
    rows = weight.float().movedim(axes.output, 0)
    shape = rows.shape
    rows = rows.reshape(shape[0], -1)
    width = rows.shape[1]
    size = group_size if axes.is_blocked and group_size else width
    groups = torch.nn.functional.pad(rows, (0, -width % size)).reshape(-1, size)
    if bits == 4:
        grid = affine_grid(groups.amin(1), groups.amax(1), bits=4, axis=0)
    else:
        grid = symmetric_grid(groups.abs().amax(1), bits=bits, axis=0)
    rounded = grid.round_trip(groups).reshape(shape[0], -1)[:, :width]
    return rounded.reshape(shape).movedim(0, axes.output).to(weight.dtype)


def _fp8_round_trip(value: Tensor, largest: Tensor) -> Tensor:
    scale = (largest / _LARGEST_FP8).clamp(min=2.0**-126)
    return (value / scale).to(_FP8).to(value.dtype) * scale
