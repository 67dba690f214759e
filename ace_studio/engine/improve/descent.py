"""Coordinate descent over a matrix on integer grids: one column, or the scales of one group, after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

_BLOCK = 64
"""Columns whose errors are passed on to the others together, by one matrix product."""
_SWEEPS = 4
_FARTHEST = 0.1
"""A sweep changes a scale by this part at most."""
_NOISE_ROWS = 0.5
"""Rows of noise per input that are put to the inputs that were seen."""


@dataclass(frozen=True)
class Quadratic:
    """The squared error of ``x @ weight.t()`` against ``y``, per row of x, without what does not depend on weight."""

    products: Tensor
    """Mean of x x^T, [inputs, inputs]."""
    wanted: Tensor
    """Mean of y x^T, [outputs, inputs]."""

    @classmethod
    def of(cls, x: Tensor, y: Tensor, *, near: Tensor) -> Quadratic:
        """As if rows of noise had been seen as well, for which ``near`` gives the wanted results.

        The noise keeps the weights near to ``near`` where the rows are too few to say anything; with many more rows
        than inputs it counts for little.

        Shapes: x [rows, inputs], y [rows, outputs], near [outputs, inputs].
        """
        rows, inputs = x.shape
        products, wanted = x.t() @ x / rows, y.t() @ x / rows
        damping = float(products.diagonal().mean()) * _NOISE_ROWS * inputs / rows
        products.diagonal().add_(damping)
        return cls(products, wanted + damping * near)

    def error(self, weight: Tensor) -> float:
        """May be negative: a constant is left out."""
        return float(((weight @ self.products - 2 * self.wanted) * weight).sum(dtype=torch.float64))


@dataclass(frozen=True)
class IntegerGrid:
    """The grids that the values of a matrix lie on."""

    scale: Tensor
    """[outputs, inputs], as are the two that follow."""
    zero_point: Tensor
    is_fixed: Tensor
    """Values whose integers stay: the ends of each grid, by which a target finds it again."""
    low: int
    high: int
    edges: Sequence[int]
    """Where groups that share a scale begin in every row, and the number of inputs; empty if rows share scales."""


def descend(start: Tensor, quadratic: Quadratic, grid: IntegerGrid, is_over: Callable[[], bool]) -> Tensor:
    """A matrix of less error than this one, with other integers and scales and the same zero points.

    Source: Behdin et al. 2023, arXiv:2309.01885, algorithm 1, for the integers, in turns with the scales, as in
    Zhang et al. 2024, arXiv:2403.07134.

    Args:
        start: On the grid, [outputs, inputs].
        quadratic: The error; its products have a positive diagonal.
        grid: The grid.
        is_over: Whether the time is up: then what was found so far is given.
    """
    descent = _Descent(start, quadratic, grid)
    for _ in range(_SWEEPS):
        for first in range(0, start.shape[1], _BLOCK):
            if is_over():
                return descent.weight
            descent.choose_integers(slice(first, min(first + _BLOCK, start.shape[1])))
        for first, last in pairwise(grid.edges):
            descent.choose_scales(slice(first, last))
    return descent.weight


class _Descent:
    def __init__(self, start: Tensor, quadratic: Quadratic, grid: IntegerGrid) -> None:
        self.weight = start.clone()
        self._products, self._grid = quadratic.products, grid
        self._scale = grid.scale.clone()
        self._slope = start @ quadratic.products - quadratic.wanted
        """Half of the error's gradient, [outputs, inputs]."""

    def choose_integers(self, block: slice) -> None:
        """Put each column of the block, in order, on the values of least error."""
        near, own, grid = self._slope[:, block].clone(), self._products[block, block], self._grid
        before = self.weight[:, block].clone()
        for column in range(block.stop - block.start):
            place = block.start + column
            old, scale, zero_point = self.weight[:, place].clone(), self._scale[:, place], grid.zero_point[:, place]
            best = (old - near[:, column] / own[column, column]) / scale + zero_point
            new = (best.round().clamp(grid.low, grid.high) - zero_point) * scale
            self.weight[:, place] = torch.where(grid.is_fixed[:, place], old, new)
            near += (self.weight[:, place] - old)[:, None] * own[column]
        self._slope += (self.weight[:, block] - before) @ self._products[block]

    def choose_scales(self, block: slice) -> None:
        """Multiply the values of the block, whose scale is the same in a row, by the factor of least error."""
        values = self.weight[:, block]
        bend = ((values @ self._products[block, block]) * values).sum(1)
        best = -(self._slope[:, block] * values).sum(1) / bend
        change = torch.where(bend > 0, best, 0.0).clamp(-_FARTHEST, _FARTHEST)[:, None]
        moved = change * values
        self.weight[:, block] += moved
        self._scale[:, block] *= 1 + change
        self._slope += moved @ self._products[block]
