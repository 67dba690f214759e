"""Bound plans in which nothing was refused."""

from ace_studio.engine.flow import BoundOp, BoundPlan
from ace_studio.records.recipes.plan import Plan, Precision, Scheme


def bound_at(plan: Plan, precisions: dict[str, Precision], scheme: Scheme | None = None) -> BoundPlan:
    ops = {op_id: BoundOp(one, one, "", scheme or plan.scheme) for op_id, one in precisions.items()}
    return BoundPlan(plan, ops)
