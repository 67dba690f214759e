"""Which plans are tried on which target, and when enough have been."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ace_studio.engine.pipeline.compress.bench import Bench
from ace_studio.engine.pipeline.compress.candidates import fallback_plans, first_plans, keeps_accuracy
from ace_studio.engine.pipeline.compress.trying import try_plan
from ace_studio.engine.targets.base import Target
from ace_studio.records.plan import Plan, Precision
from ace_studio.records.recipe import Objective


def try_plans(bench: Bench, targets: Sequence[Target]) -> None:
    """Try the recipe's plan on every target, or search for one if the goal decides; fall back if none is accurate."""
    recipe = bench.recipe
    if recipe.plan.from_goal and recipe.goal.has_bound:
        for target in targets:
            _search(bench, target, first_plans(recipe))
    else:
        for target, plan in itertools.product(targets, first_plans(recipe)):
            try_plan(bench, target, plan)
    for plan in fallback_plans(recipe):
        if any(keeps_accuracy(candidate, bench.baseline, recipe.goal) for candidate in bench.candidates):
            break
        for target in targets:
            try_plan(bench, target, plan)
    if not bench.candidates:
        bench.candidates = bench.left_out
        bench.reporter.warn("nothing-fits", "No target could run the plan; each run says why")


def _search(bench: Bench, target: Target, plans: Sequence[Plan]) -> None:
    """Try the plans from the smallest up; once one kind keeps the accuracy, wider kinds are not built.

    Both int8 kinds are always tried, because which one is faster depends on the model. When the goal asks for the
    best accuracy, everything is built.
    """
    kept = False
    for plan in plans:
        is_wider = plan.default not in (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)
        if kept and is_wider and bench.recipe.goal.optimize is not Objective.ACCURACY:
            return
        candidate = try_plan(bench, target, plan)
        kept = kept or keeps_accuracy(candidate, bench.baseline, bench.recipe.goal)
