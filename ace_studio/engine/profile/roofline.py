"""Roofline: what bounds each op, from its time and its cost.

Source: Williams, Waterman and Patterson 2009, doi 10.1145/1498765.1498785.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.ops import operator_name
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import Bound, Ceilings, OpReport, OpsProfile

_COMPUTES_AS = {
    Precision.INT8_DYNAMIC: Precision.INT8_STATIC,
    Precision.INT8_WEIGHT: Precision.FP32,
    Precision.INT4_WEIGHT: Precision.FP32,
}
"""Weight-only kernels multiply floats."""


def within(ops: Sequence[OpReport], whole_ms: float) -> tuple[OpReport, ...]:
    """The ops with times that sum up to the whole at most: timing each of them by itself takes longer."""
    total_ms = sum(op.latency_ms or 0.0 for op in ops)
    if total_ms <= whole_ms:
        return tuple(ops)
    scaled = (op.latency_ms and op.latency_ms * whole_ms / total_ms for op in ops)
    return tuple(msgspec.structs.replace(op, latency_ms=ms) for op, ms in zip(ops, scaled, strict=True))


def with_costs(ops: Sequence[OpReport], table: GraphTable, ceilings: Ceilings | None) -> tuple[OpReport, ...]:
    """The reports with share, operations, bytes, and where ceilings are known what bounds each op.

    An op that is part of another's kernel has no figures of its own.
    """
    costs = op_costs(
        table, fused_into={op.id: op.fused_into for op in ops if op.fused_into}, actual={op.id: op.actual for op in ops}
    )
    total_ms = sum(op.latency_ms or 0.0 for op in ops)
    found = []
    for op in ops:
        cost = costs.get(op.id)
        if cost is None or op.latency_ms is None:
            found.append(op)
            continue
        changes: dict[str, object] = {"flops": cost.flops, "bytes": cost.bytes}
        if total_ms > 0:
            changes["share"] = round(op.latency_ms / total_ms, 6)
        if ceilings is not None and op.device == "cpu":
            changes |= _bound(op, flops=cost.flops, moved=cost.bytes, ceilings=ceilings)
        found.append(msgspec.structs.replace(op, **changes))
    return tuple(found)


def _bound(op: OpReport, *, flops: int, moved: int, ceilings: Ceilings) -> dict[str, object]:
    """What the op's time is bound by, and how near it is to the least that it could be."""
    rate = compute_rate(op.actual, ceilings)
    if not rate:
        return {}
    compute_ms = flops / rate / 1e6
    memory_ms = moved / byte_rate(moved, ceilings) / 1e6
    least_ms = max(compute_ms, memory_ms)
    if not least_ms or not op.latency_ms:
        return {}
    bound = Bound.COMPUTE if compute_ms >= memory_ms else Bound.MEMORY
    return {"bound": bound, "ceiling_share": round(min(1.0, least_ms / op.latency_ms), 4)}


def compute_rate(actual: str, ceilings: Ceilings) -> float:
    """10^9 operations a second at a precision; that of fp32 where none was measured; 0 if neither was."""
    word = _COMPUTES_AS.get(Precision(actual), actual) if actual in set(Precision) else actual
    return ceilings.gflops.get(str(word), ceilings.gflops.get(str(Precision.FP32), 0.0))


def byte_rate(moved: int, ceilings: Ceilings) -> float:
    """10^9 bytes a second for this many bytes: those of the smallest working set that they fit in."""
    fitting = [size for size in sorted(ceilings.gbytes_per_s_at) if size >= moved]
    return ceilings.gbytes_per_s_at[fitting[0]] if fitting else ceilings.gbytes_per_s


def summary(ops: Sequence[OpReport], *, latency_ms: float, source: str, measured_input: str = "") -> OpsProfile | None:
    """How much of the latency the ops explain, both on the same input; None if nothing timed the ops."""
    times = [op.latency_ms for op in ops if op.latency_ms is not None]
    if not times:
        return None
    return OpsProfile(
        ops_ms=sum(times),
        latency_ms=latency_ms,
        uncovered_ms=max(0.0, latency_ms - sum(times)),
        timed_ops=len(times),
        source=source,
        measured_input=measured_input,
    )


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
_ACTIVATION_SCALE = {Precision.BF16: 1 / 2, Precision.FP16: 1 / 2, Precision.INT8_STATIC: 1 / 4, Precision.FP8: 1 / 4}
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
