"""Sizes of ops and closed blocks, from the length of their texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ace_studio.records.graph import GraphTable, OpKind

if TYPE_CHECKING:
    from ace_studio.gui.graph_layout.hierarchy import Hierarchy

OP_HEIGHT = 46.0
PORT_HEIGHT = 38.0
BLOCK_HEIGHT = 74.0
SEAM_WIDTH, SEAM_HEIGHT = 400.0, 44.0
"""Of the box of a break: room for its reason."""
STACK_LEAF = 5.0
"""How far each card of a folded run of layers peeps out behind the one before."""

CHARACTER = 7.3
SMALL_CHARACTER = 6.0
_WIDTH_STEP = 16.0
"""Widths are multiples of this, so that more blocks have equal sizes and share one layout."""

TITLE_HEIGHT = 34.0
FRAME_SIDE = 18.0
FRAME_BOTTOM = 18.0
"""Only below blocks whose values are not used outside; else the line to the frame takes the room."""


def short_op(op: str) -> str:
    """Short name of an operator: ``aten.conv2d.default`` is ``conv2d``."""
    if op.startswith("<"):
        return op.strip("<>").removeprefix("built-in ").removeprefix("function ").split(" ")[0]
    parts = op.split(".")
    if len(parts) >= 3 and parts[0] in {"aten", "prims", "_operator", "prim"}:
        return parts[1]
    return parts[-1] if len(parts) == 2 else op


def short_dtype(dtype: str) -> str:
    """``float32`` is ``f32``, ``bfloat16`` is ``bf16``, ``int64`` is ``i64``."""
    name = dtype.removeprefix("torch.")
    for long, short in (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "i")):
        if name.startswith(long):
            return short + name[len(long) :]
    return name


def title_of(table: GraphTable, row: int) -> str:
    """First line on a row's box."""
    return table.op_id[row] if table.kind[row] is not OpKind.OP else short_op(table.op[row])


def detail_of(table: GraphTable, row: int) -> str:
    """Second line on a row's box: shape and element type."""
    shape, dtype = table.shape[row].replace("x", "×"), short_dtype(table.dtype[row])
    return f"{shape} · {dtype}" if shape and dtype else shape or dtype


def node_sizes(table: GraphTable, tree: Hierarchy) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Width and height of every row, and of every block while it is closed.

    Shapes: two arrays [nodes].
    """
    widths = np.empty(tree.node_count)
    heights = np.empty(tree.node_count)
    known: dict[tuple[int, int], float] = {}
    for row in range(len(table)):
        if table.kind[row] is OpKind.BREAK:
            widths[row], heights[row] = SEAM_WIDTH, SEAM_HEIGHT
            continue
        title, name = title_of(table, row), tree.row_names[row]
        first = len(title) * CHARACTER + (len(name) * SMALL_CHARACTER + 10 if name else 0)
        key = (int(first), len(detail_of(table, row)))
        width = known.get(key)
        if width is None:
            width = known[key] = _stepped(max(first + 44, key[1] * SMALL_CHARACTER + 40), low=96, high=256)
        widths[row] = width
        heights[row] = OP_HEIGHT if table.kind[row] is OpKind.OP else PORT_HEIGHT
    for at, (name, kind, repeats) in enumerate(zip(tree.names, tree.types, tree.repeats, strict=True)):
        block = tree.row_count + at
        label = len(name) * CHARACTER + (48 if repeats else 0)
        widths[block] = _stepped(max(label + 48, len(kind) * SMALL_CHARACTER + 92), low=176, high=320)
        heights[block] = BLOCK_HEIGHT + (2 * STACK_LEAF if repeats else 0)
    return widths, heights


def _stepped(width: float, *, low: float, high: float) -> float:
    return min(high, max(low, float(np.ceil(width / _WIDTH_STEP)) * _WIDTH_STEP))
