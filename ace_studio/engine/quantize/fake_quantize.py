"""Rounding a value to the grid of a precision and back, in float32."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.ops.roles import WeightAxes
from ace_studio.engine.quantize.affine import AffineGrid, affine_grid, symmetric_grid
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.records.processor import int8_weight_bits
from ace_studio.records.recipes.plan import WEIGHT_BITS, ActivationGrid, Precision, Scheme, WeightGranularity

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
    if precision is Precision.FP8:
        others = [dim for dim in range(weight.dim()) if dim != axes.output]
        return _fp8_round_trip(weight, weight.abs().amax(others, keepdim=True))
    groups = weight_groups(weight, axes, precision=precision, scheme=scheme)
    return groups.restore(groups.grid(groups.rows).round_trip(groups.rows))


@dataclass(frozen=True)
class WeightGroups:
    """A weight as rows of values that share a scale."""

    rows: Tensor
    """[groups, size], float32; short last groups are filled up with zeros."""
    bits: int
    is_affine: bool
    restore: Callable[[Tensor], Tensor]
    """Turns rows like these into a weight like that one."""

    def grid(self, rows: Tensor) -> AffineGrid:
        """The grid of each row that an op finds for such rows, from their smallest and largest value."""
        if self.is_affine:
            return affine_grid(rows.amin(1), rows.amax(1), bits=self.bits, axis=0)
        return symmetric_grid(rows.abs().amax(1), bits=self.bits, axis=0)


def weight_groups(weight: Tensor, axes: WeightAxes, *, precision: Precision, scheme: Scheme) -> WeightGroups:
    """The values of a weight that share a scale at a precision of integers; see `round_weight`."""
    moved = weight.float().movedim(axes.output, 0)
    channels = moved.reshape(moved.shape[0], -1)
    size = channels.shape[1]
    if precision in WEIGHT_BITS:
        size = scheme.group_size if axes.is_blocked and scheme.group_size else size
    elif scheme.weights is WeightGranularity.PER_TENSOR:
        channels, size = channels.reshape(1, -1), channels.numel()
    rows = torch.nn.functional.pad(channels, (0, -channels.shape[1] % size)).reshape(-1, size)

    def restore(changed: Tensor) -> Tensor:
        flat = changed.reshape(channels.shape[0], -1)[:, : channels.shape[1]]
        return flat.reshape(moved.shape).movedim(0, axes.output).to(weight.dtype)

    bits = WEIGHT_BITS.get(precision) or int8_weight_bits()
    return WeightGroups(rows, bits, precision is Precision.INT4_WEIGHT, restore)


def round_rows(picked: Tensor) -> Tensor:
    """Rows picked from a table, each on its own symmetric 8-bit grid, which is that of the table's row.

    Shapes: picked [..., width] -> the same.
    """
    rows = picked.float().reshape(-1, picked.shape[-1])
    return symmetric_grid(rows.abs().amax(1), axis=0).round_trip(rows).reshape(picked.shape).to(picked.dtype)


def _fp8_round_trip(value: Tensor, largest: Tensor) -> Tensor:
    scale = (largest / _LARGEST_FP8).clamp(min=2.0**-126)
    return (value / scale).to(_FP8).to(value.dtype) * scale
