"""Planned and actual side by side, for every op of the captured graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.targets.base import OpActual
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import OpReport, OpSupport, SupportStatus


def report_ops(
    table: GraphTable, plan: BoundPlan, actual: Sequence[OpActual], *, support: Mapping[str, OpSupport]
) -> tuple[OpReport, ...]:
    """One report per op row. An op that the runtime says nothing of is ``unknown``, never assumed.

    ``support`` has the ops that the target does not take as they are; where it calls PyTorch instead, that is told.
    """
    found = {one.op_id: one for one in actual}
    reports = []
    for row in table.op_rows():
        op_id = table.op_id[row]
        seen = found.get(op_id)
        op = plan.ops[op_id]
        refused = op.reason if op.is_refused else ""
        said = seen.reason if seen else "the runtime says nothing of this op"
        other = support.get(op_id)
        called = other.instead if other is not None and other.status is SupportStatus.FALLBACK else ""
        parts = (said, called) if refused and refused in said else (refused, said, called)
        reports.append(
            OpReport(
                id=op_id,
                op=table.op[row],
                module=table.module[row],
                shape=table.shape[row],
                device=seen.device if seen else table.device[row],
                planned=str(op.requested),
                actual=seen.actual if seen else "unknown",
                latency_ms=seen.latency_ms if seen else None,
                fused_into=seen.fused_into if seen else "",
                reason="; ".join(part for part in parts if part) or op.reason,
            )
        )
    return tuple(reports)
