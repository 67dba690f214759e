"""Roofline: what bounds each op, from its time and its cost.

Source: Williams, Waterman and Patterson 2009, doi 10.1145/1498765.1498785.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ace_studio.engine.profile.moved import op_costs
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import Bound, Ceilings, OpReport, OpsProfile

_COMPUTES_AS = {
    Precision.INT8_DYNAMIC: Precision.INT8_STATIC,
    Precision.INT8_WEIGHT: Precision.FP32,
    Precision.INT4_WEIGHT: Precision.FP32,
}
"""Weight-only kernels multiply floats."""


def with_costs(ops: Sequence[OpReport], table: GraphTable, ceilings: Ceilings | None) -> tuple[OpReport, ...]:
    """The reports with share, operations, bytes, and where ceilings are known what bounds each op.

    An op that is part of another's kernel has no figures of its own.
    """
    costs = op_costs(
        table,
        fused_into={op.id: op.fused_into for op in ops if op.fused_into},
        actual={op.id: op.actual for op in ops},
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


def summary(ops: Sequence[OpReport], *, latency_ms: float, source: str) -> OpsProfile | None:
    """How much of the latency the ops explain; None if nothing timed them."""
    times = [op.latency_ms for op in ops if op.latency_ms is not None]
    if not times:
        return None
    return OpsProfile(
        ops_ms=sum(times),
        latency_ms=latency_ms,
        uncovered_ms=latency_ms - sum(times),
        timed_ops=len(times),
        source=source,
    )
