"""Rows of a graph of ONNX beside those of a graph of torch: aligned in their order by kind, module and sizes."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ace_studio.records import ops
from ace_studio.records.graph import GraphTable, plain_sizes
from ace_studio.records.recipes.plan import plain_path

MOST_PAIRS = 25_000_000
"""Pairs of rows that are compared, a byte each. Of larger graphs only the first rows of the first are aligned."""
_UP, _LEFT, _PAIR = 0, 1, 2
_SAME_KIND, _SAME_SIZES, _SAME_MODULE = 2, 1, 3
"""What makes two rows fit. Rows of different kinds fit if their family and sizes are the same."""


def aligned_rows(first: GraphTable, second: GraphTable) -> dict[int, int]:
    """Row of the first -> row of the second, both rising, so that the sum of what fits is largest.

    The alignment of Needleman and Wunsch 1970 (doi 10.1016/0022-2836(70)90057-4) without a cost for gaps. An exporter
    folds and splits ops, so rows without a partner are usual on both sides.
    """
    numbers: dict[object, int] = {}
    mine, theirs = (_described(table, numbers) for table in (first, second))
    count, width = min(len(first), MOST_PAIRS // max(1, len(second))), len(second)
    steps = np.empty((count, width), dtype=np.uint8)
    best: npt.NDArray[np.int32] = np.zeros(width + 1, dtype=np.int32)
    for row in range(count):
        weights = _fits(mine[:, row], theirs)
        paired = np.where(weights > 0, best[:-1] + weights, -1)
        reached = np.maximum.accumulate(np.maximum(best[1:], paired)).astype(np.int32)
        steps[row] = np.where(paired == reached, _PAIR, np.where(best[1:] == reached, _UP, _LEFT))
        best[1:] = reached
    return dict(_traced_back(steps))


def _described(table: GraphTable, numbers: dict[object, int]) -> npt.NDArray[np.int32]:
    """Per row the numbers of kind, family, sizes and module, and whether it holds weights."""

    def number(*one: object) -> int:
        return numbers.setdefault(one, len(numbers) + 1)

    columns = [
        (
            number("kind", _kind(name)),
            number("family", ops.OpFamily.BORDER if name in ("input", "output") else ops.family_of(name)),
            number("sizes", plain_sizes(shape).partition("x")[2]),  # a file often fixes the batch
            number("module", plain_path(module)) if module else 0,
            ops.is_weighted(op),
        )
        for op, name, shape, module in zip(
            table.op, map(ops.operator_name, table.op), table.shape, table.module, strict=True
        )
    ]
    return np.array(columns, dtype=np.int32).reshape(-1, 5).T


def _kind(name: str) -> str:
    """One word for what torch and ONNX name differently: ``conv``, ``maxpool``, ``layernorm``."""
    if name in ops.CONVOLUTIONS:
        return "conv"
    if name in ops.LINEAR | ops.BATCHED_PRODUCTS | {"mm"}:
        return "product"
    return re.sub(r"[_\d]|ization$", "", name.lower())


def _fits(row: npt.NDArray[np.int32], others: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """How well a row fits each of the others; 0: not at all."""
    kind, family, sizes, module, _ = (others[at] == row[at] for at in range(5))
    weights = _SAME_KIND * kind * (1 + row[4]) + _SAME_SIZES * sizes + _SAME_MODULE * (module & (row[3] > 0))
    fits: npt.NDArray[np.int32] = np.where(kind | (family & sizes), weights, 0).astype(np.int32)
    return fits


def _traced_back(steps: npt.NDArray[np.uint8]) -> Sequence[tuple[int, int]]:
    """The pairs of the best alignment, in order."""
    found = []
    row, other = steps.shape[0] - 1, steps.shape[1] - 1
    while row >= 0 and other >= 0:
        step = steps[row, other]
        if step == _PAIR:
            found.append((row, other))
        row, other = row - (step != _LEFT), other - (step != _UP)
    return found[::-1]
