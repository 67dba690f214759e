"""Binding a plan to a captured graph and a target."""

from collections.abc import Callable

from ace_studio.engine.flow import BoundOp, BoundPlan
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.plan_index import PlanIndex

_FLOAT64_REASON = "it computes in float64, and only float32 can be compressed; call .float() on the model"


def bind_plan(plan: Plan, table: GraphTable, *, op_problem: Callable[[str, Precision], str]) -> BoundPlan:
    """Assign every op the precision that the plan requests, or the plan's rest if the target refuses it.

    Args:
        plan: What the user asked for.
        table: The captured graph.
        op_problem: ``Target.op_problem``: empty if the operator can run at the precision, else why not.
    """
    operators = {table.op_id[row]: table.op[row] for row in table.op_rows()}
    wide = {table.op_id[row] for row in table.op_rows() if table.dtype[row] == "float64"}
    ops = {}
    for request in PlanIndex(table).resolve(plan):
        op_id, assigned, refusal = request.op_id, request.precision, ""
        if assigned is not Precision.FP32:
            refusal = _FLOAT64_REASON if op_id in wide else op_problem(operators[op_id], assigned)
        if refusal:
            can_rest = op_id not in wide and not op_problem(operators[op_id], plan.rest)
            assigned = plan.rest if can_rest else Precision.FP32
        ops[op_id] = BoundOp(request.precision, assigned, refusal or request.reason, request.scheme)
    return BoundPlan(plan, ops)


def plan_problem(bound: BoundPlan) -> str:
    """Why a bound plan is pointless: everything it asked for was refused. Empty if something is left of it.

    A plan that asks for fp32 throughout is never pointless, nor is one whose other rules match no op.
    """
    asked = {op.requested for op in bound.ops.values()} - {Precision.FP32}
    if not asked or bound.precisions - {Precision.FP32}:
        return ""
    words = ", ".join(sorted(asked))
    reasons = {op.reason for op in bound.ops.values()}
    shared = f": {reasons.pop()}" if len(reasons) == 1 else ""
    return f"no op of this model can run at {words} here{shared}"
