"""Binding a plan to a captured graph and a target: what every op is asked to do, and why some are asked for less."""

from __future__ import annotations

from collections.abc import Callable

from ace_studio.engine.flow import BoundPlan
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Plan, Precision, Scheme
from ace_studio.records.recipes.plan_index import PlanIndex


def bind_plan(plan: Plan, table: GraphTable, *, op_problem: Callable[[str, Precision], str]) -> BoundPlan:
    """Give every op its planned precision, or the plan's rest with the reason where the target cannot do that.

    Args:
        plan: What the user asked for.
        table: The captured graph.
        op_problem: ``Target.op_problem``: empty if the operator can run at the precision, else why not.
    """
    operators = {table.op_id[row]: table.op[row] for row in table.op_rows()}
    wide = {table.op_id[row] for row in table.op_rows() if table.dtype[row] == "float64"}
    precision: dict[str, Precision] = {}
    reason: dict[str, str] = {}
    schemes: dict[str, Scheme] = {}
    for planned in PlanIndex(table).resolve(plan):
        problem = ""
        if planned.precision is not Precision.FP32:
            problem = op_problem(operators[planned.op_id], planned.precision)
            if planned.op_id in wide:
                problem = "it computes in float64, and only float32 can be compressed; call .float() on the model"
        precision[planned.op_id] = planned.precision
        reason[planned.op_id] = problem or planned.reason
        if problem:
            can_rest = planned.op_id not in wide and not op_problem(operators[planned.op_id], plan.rest)
            precision[planned.op_id] = plan.rest if can_rest else Precision.FP32
        if planned.scheme != plan.scheme:
            schemes[planned.op_id] = planned.scheme
    return BoundPlan(plan=plan, precision=precision, reason=reason, schemes=schemes)


def plan_problem(plan: Plan, bound: BoundPlan) -> str:
    """Why a bound plan is pointless: everything it asked for was refused. Empty if something is left of it.

    A plan that asks for fp32 throughout is never pointless.
    """
    asked = {plan.default, *(rule.precision for rule in plan.rules)} - {Precision.FP32}
    if not asked or bound.precisions - {Precision.FP32}:
        return ""
    words = ", ".join(sorted(asked))
    reasons = set(bound.reason.values())
    shared = f": {reasons.pop()}" if len(reasons) == 1 else ""
    return f"no op of this model can run at {words} here{shared}"
