"""The planned and the actual precision of every op of the captured graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.targets.base import OpActual
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import OpReport, OpSupport, SupportStatus


def report_ops(
    table: GraphTable, plan: BoundPlan, actual: Sequence[OpActual], *, support: Mapping[str, OpSupport]
) -> tuple[OpReport, ...]:
    """One report per op row. An op that the runtime does not report is ``unknown``.

    ``support`` holds the ops that are not native to the target; where it calls PyTorch instead, the reason says so.
    """
    by_op = {one.op_id: one for one in actual}
    reports = []
    for row in table.op_rows():
        op_id = table.op_id[row]
        op, seen, other = plan.ops[op_id], by_op.get(op_id), support.get(op_id)
        parts = [
            op.reason if op.is_refused else "",
            seen.reason if seen else "the runtime does not report this op",
            other.instead if other is not None and other.status is SupportStatus.FALLBACK else "",
        ]
        if parts[0] in parts[1]:  # some targets repeat the refusal
            parts[0] = ""
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
                reason="; ".join(filter(None, parts)) or op.reason,
            )
        )
    return tuple(reports)
