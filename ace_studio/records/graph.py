"""The captured graph as columns: one tuple per attribute, one entry per op.

Columns because 20,000 ops encode in 9 ms that way and in 431 ms as objects, and because numpy reads them.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec


class OpKind(StrEnum):
    """What a row of the graph is."""

    INPUT = "input"
    """An input of the model."""
    OP = "op"
    """A computation."""
    OUTPUT = "output"
    """The model's result."""
    BREAK = "break"
    """A graph break between two subgraphs of a partial capture: Python code that runs between them."""


class GraphTable(msgspec.Struct, frozen=True, kw_only=True):
    """A captured graph. Every tuple that is not about files, modules or edges has one entry per row.

    Rows are in execution order: a row only reads rows before it. Weights are not rows; their bytes are counted at
    the op that reads them. Sizes and costs are for the example that was traced.
    """

    op_id: tuple[str, ...]
    """Unique name of the row within the graph, such as ``conv2d_3``; the ``id:`` of the plan's rules."""
    kind: tuple[OpKind, ...]
    op: tuple[str, ...]
    """Operator, such as ``aten.conv2d.default``; ``input`` and ``output`` for those kinds."""
    module: tuple[str, ...]
    """Dotted path of the innermost module the op came from; empty at the root. A second call of the
    same module is ``path@1``."""
    shape: tuple[str, ...]
    """Shape of the (first) result with symbols, such as ``s0x64x56x56``; an expression stands in parentheses, as in
    ``(s0-3)x64``, and may hold an x: ``(Max(4,s0))x64``. Empty for a scalar, and for what is not a tensor."""
    dtype: tuple[str, ...]
    """Element type of the (first) result, such as ``float32``; empty if it is not a tensor."""
    device: tuple[str, ...]
    """Device of the (first) result, such as ``cpu`` or ``cuda:0``."""
    file: tuple[int, ...]
    """Index into `files` of the user's source line; -1 if none is known."""
    line: tuple[int, ...]
    """1-based line in that file; 0 if none is known."""
    flops: tuple[int, ...]
    """Floating-point operations (a multiply-add counts 2); 0 where nothing is computed."""
    weight_bytes: tuple[int, ...]
    """Bytes of the parameters and buffers that the op reads."""
    output_bytes: tuple[int, ...]
    """Bytes of the op's results."""
    edge_source: tuple[int, ...]
    """Row index at which each edge starts."""
    edge_target: tuple[int, ...]
    """Row index at which the same edge ends."""
    piece: tuple[int, ...] = ()
    """Index into `CaptureReport.pieces` of the subgraph of the row; -1 for inputs, outputs and breaks. Empty for a
    graph that was captured whole."""
    attributes: tuple[str, ...] = ()
    """Arguments that are no tensors, a line each: ``stride = [2, 2]``. Empty where the table came without."""
    weights: tuple[str, ...] = ()
    """Parameters and buffers that the op reads, a line each: ``conv1.weight 64x3x7x7 float32``. Empty likewise."""
    files: tuple[str, ...] = ()
    """Absolute paths of source files."""
    module_paths: tuple[str, ...] = ()
    """Every module path that occurs, parents included, without the root."""
    module_types: tuple[str, ...] = ()
    """Class name of each of `module_paths`; empty where a path is only a name between dots."""
    name: str = ""
    """Class name of the model."""

    def __len__(self) -> int:
        return len(self.op_id)

    def op_rows(self) -> Iterator[int]:
        """Indices of the rows that compute something."""
        op = OpKind.OP
        return (row for row, kind in enumerate(self.kind) if kind is op)

    @property
    def op_count(self) -> int:
        """How many rows compute something."""
        return self.kind.count(OpKind.OP)


def sizes_of(shape: str) -> list[str]:
    """The sizes of a shape of the table: ``s0``, ``64``. Empty for a scalar, and for what is not a tensor."""
    # An x inside parentheses, and that of Max(4, s0), belongs to a size.
    return re.split(r"(?<!Ma)x(?![^()]*\))", shape) if shape else []


def plain_sizes(shape: str) -> str:
    """The shape with a question mark for every size that is no number."""
    return "x".join(size if size.isdecimal() else "?" for size in sizes_of(shape))
