"""Operations and bytes moved of every op at the precision that it runs at, with the ops fused into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.ops import operator_name
from ace_studio.records.recipes.plan import Precision

_VIEWS = frozenset(
    {"view", "reshape", "_unsafe_view", "transpose", "t", "permute", "expand", "unsqueeze", "squeeze", "select",
     "slice", "alias", "detach", "getitem", "size", "sym_size", "split", "split_with_sizes", "chunk", "unbind",
     "flatten", "unflatten", "movedim", "narrow", "as_strided", "view_as"}
)  # fmt: skip
"""Ops that give another view of the same bytes; a copy that one of them may have to make is not counted."""
_LOOKUPS = frozenset({"embedding", "embedding_bag", "index_select", "gather", "index"})
"""Ops that read only as many bytes of their weight as they give."""
_WEIGHT_SCALE = {
    Precision.BF16: 1 / 2,
    Precision.FP16: 1 / 2,
    Precision.INT8_STATIC: 1 / 4,
    Precision.INT8_DYNAMIC: 1 / 4,
    Precision.INT8_WEIGHT: 1 / 4,
    Precision.INT4_WEIGHT: 1 / 8,
    Precision.FP8: 1 / 4,
}
_ACTIVATION_SCALE = {
    Precision.BF16: 1 / 2,
    Precision.FP16: 1 / 2,
    Precision.INT8_STATIC: 1 / 4,
    Precision.FP8: 1 / 4,
}
"""Weight-only and dynamic kernels take and give floats."""


@dataclass(frozen=True)
class OpCost:
    """The least that one call of an op, and of the ops fused into it, computes and moves."""

    flops: int
    bytes: int


def op_costs(table: GraphTable, *, fused_into: Mapping[str, str], actual: Mapping[str, str]) -> dict[str, OpCost]:
    """The cost of every op that is not fused into another.

    A value that stays inside of a fused group is not moved. A value is counted at the precision of the group that
    reads or writes it, also where a neighbour holds it in another.

    Args:
        table: The captured graph; its bytes are those of the float model.
        fused_into: Op id -> op whose kernel does it too.
        actual: Op id -> precision word that it runs at; other words count as fp32.
    """
    home = {op_id: _root(op_id, fused_into) for op_id in table.op_id}
    groups: dict[str, list[int]] = {}
    for row in table.op_rows():
        groups.setdefault(home[table.op_id[row]], []).append(row)
    sources, readers = _edges(table)
    costs = {}
    for op_id, rows in groups.items():
        inside = set(rows)
        word = actual.get(op_id, Precision.FP32)
        weight_scale = _WEIGHT_SCALE.get(Precision(word), 1.0) if word in set(Precision) else 1.0
        scale = _ACTIVATION_SCALE.get(Precision(word), 1.0) if word in set(Precision) else 1.0
        weights = sum(_weight_bytes(table, row) for row in rows) * weight_scale
        read = {source for row in rows if not _is_view(table, row) for source in sources[row] if source not in inside}
        written = [row for row in rows if not _is_view(table, row) and (set(readers[row]) - inside or not readers[row])]
        values = sum(_value_bytes(table, row, scale) for row in (*read, *written))
        costs[op_id] = OpCost(flops=sum(table.flops[row] for row in rows), bytes=round(weights + values))
    return costs


def _root(op_id: str, fused_into: Mapping[str, str]) -> str:
    seen = {op_id}
    while (above := fused_into.get(op_id, "")) and above not in seen:
        seen.add(above)
        op_id = above
    return op_id


def _edges(table: GraphTable) -> tuple[Sequence[list[int]], Sequence[list[int]]]:
    sources: list[list[int]] = [[] for _ in table.op_id]
    readers: list[list[int]] = [[] for _ in table.op_id]
    for source, target in zip(table.edge_source, table.edge_target, strict=True):
        sources[target].append(source)
        readers[source].append(target)
    return sources, readers


def _is_view(table: GraphTable, row: int) -> bool:
    return table.kind[row] is OpKind.OP and operator_name(table.op[row]) in _VIEWS


def _weight_bytes(table: GraphTable, row: int) -> int:
    is_lookup = operator_name(table.op[row]) in _LOOKUPS
    return min(table.weight_bytes[row], table.output_bytes[row]) if is_lookup else table.weight_bytes[row]


def _value_bytes(table: GraphTable, row: int, scale: float) -> float:
    return table.output_bytes[row] * (scale if table.dtype[row] in ("float32", "float64") else 1.0)
