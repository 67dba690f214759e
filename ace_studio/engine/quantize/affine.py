"""The arithmetic of affine grids: real = scale * (integer - zero point).

Ranges are widened to contain 0, and 0 lies exactly on the grid, so that padding and ReLU stay exact.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

SMALLEST_SCALE = 2.0**-126
"""Smallest normal float32: a range of width 0 gets this scale, and represents its 0 exactly."""


class InvalidRange(ValueError):  # noqa: N818 - named for what it is, like a unit
    """A range that no grid can cover."""


@dataclass(frozen=True)
class AffineGrid:
    """A grid of integers ``low..high`` over the reals, one per tensor or one per index of ``axis``.

    Shapes: scale and zero_point [] (per tensor) or [C] (per channel).
    """

    scale: Tensor
    zero_point: Tensor
    low: int
    high: int
    axis: int | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The smallest integer type of torch that holds the grid."""
        if self.low >= 0:
            return torch.uint8 if self.high <= 255 else torch.int32
        return torch.int8 if self.low >= -128 and self.high <= 127 else torch.int32

    def quantize(self, values: Tensor) -> Tensor:
        """Integers nearest to ``values / scale + zero_point`` (ties to even), clipped to the grid."""
        scale, zero_point = (self._broadcast(one, values) for one in (self.scale, self.zero_point))
        integers = torch.round(values / scale) + zero_point
        return integers.clamp(self.low, self.high).to(self.dtype)

    def dequantize(self, integers: Tensor) -> Tensor:
        """The reals that the integers stand for, float32."""
        scale, zero_point = (self._broadcast(one, integers) for one in (self.scale, self.zero_point))
        return (integers.to(torch.float32) - zero_point) * scale

    def round_trip(self, values: Tensor) -> Tensor:
        """What is left of ``values`` after `quantize` and `dequantize`; off by at most scale / 2 inside the range."""
        return self.dequantize(self.quantize(values))

    def _broadcast(self, per_channel: Tensor, like: Tensor) -> Tensor:
        if self.axis is None or per_channel.dim() == 0:
            return per_channel
        shape = [1] * like.dim()
        shape[self.axis] = -1
        return per_channel.reshape(shape)


def affine_scale(low: Tensor, high: Tensor, *, bits: int) -> Tensor:
    """Scale of an affine grid of ``2^bits`` values that covers [low, high] and 0.

    Shapes: low, high [] or [C] -> the same, in the tensor's own unit.
    Error: a value inside the range is off by at most scale / 2 (plus the shift of the zero point, again at most
    scale / 2 at the ends); outside it is clipped.
    Source: Jacob et al. 2018, arXiv:1712.05877, section 3; the range is widened to contain 0 so that padding stays
    exact.
    Raises: InvalidRange if high < low or a bound is not finite.
    """
    _check_range(low, high)
    width = torch.clamp(high, min=0.0) - torch.clamp(low, max=0.0)
    scale: Tensor = width / (2**bits - 1)
    return scale.clamp(min=SMALLEST_SCALE)


def affine_grid(
    low: Tensor, high: Tensor, *, bits: int = 8, is_signed: bool = False, axis: int | None = None
) -> AffineGrid:
    """The grid of ``2^bits`` integers that covers [low, high] and has 0 on it.

    Shapes: low, high [] or [C]; see `affine_scale` for the error and the source.
    Raises: InvalidRange if high < low or a bound is not finite.
    """
    scale = affine_scale(low, high, bits=bits)
    first = -(2 ** (bits - 1)) if is_signed else 0
    last = first + 2**bits - 1
    zero_point = (first - torch.round(torch.clamp(low, max=0.0) / scale)).clamp(first, last)
    return AffineGrid(scale=scale, zero_point=zero_point.to(torch.int32), low=first, high=last, axis=axis)


def symmetric_grid(bound: Tensor, *, bits: int = 8, axis: int | None = None) -> AffineGrid:
    """The grid of ``2^bits - 1`` integers around a zero point of 0 that covers [-bound, bound].

    The lowest integer is left out so that the grid is its own mirror image: -127..127 at 8 bits.
    Shapes: bound [] or [C]. Error: at most scale / 2 = bound / (2^bits - 2) inside the range.
    Source: Nagel et al. 2021, arXiv:2106.08295, section 2.2.
    Raises: InvalidRange if a bound is negative or not finite.
    """
    _check_range(-bound, bound)
    last = 2 ** (bits - 1) - 1
    scale = (bound / last).clamp(min=SMALLEST_SCALE)
    return AffineGrid(
        scale=scale, zero_point=torch.zeros_like(scale, dtype=torch.int32), low=-last, high=last, axis=axis
    )


def weight_grid(weight: Tensor, *, bits: int = 8) -> AffineGrid:
    """The symmetric grid per channel that covers a weight.

    Shapes: weight [C, ...] -> scale [C].
    Raises: InvalidRange if a weight is not finite.
    """
    return symmetric_grid(weight.detach().abs().float().flatten(1).amax(1), bits=bits, axis=0)


def _check_range(low: Tensor, high: Tensor) -> None:
    if not bool(low.isfinite().all() and high.isfinite().all()):
        raise InvalidRange("a bound of the range is not finite")
    if bool((high < low).any()):
        raise InvalidRange("the upper bound is below the lower one")
