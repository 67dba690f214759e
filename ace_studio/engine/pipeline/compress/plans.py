"""Which plans are tried on which target, and when enough have been."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ace_studio.engine.pipeline.compress.bench import Bench
from ace_studio.engine.pipeline.compress.candidates import first_plans, is_accuracy_bounded, keeps_accuracy
from ace_studio.engine.pipeline.compress.search.run import GoalSearch
from ace_studio.engine.pipeline.compress.trying import expect_builds, try_plan
from ace_studio.engine.targets.base import Target


def try_plans(bench: Bench, targets: Sequence[Target]) -> None:
    """Try the recipe's plan on every target, or search for one if the goal decides, or if none is accurate enough."""
    recipe = bench.recipe
    if recipe.plan.from_goal and recipe.goal.has_bound:
        GoalSearch(bench).run(targets)
    else:
        pairs = list(itertools.product(targets, first_plans(recipe)))
        expect_builds(bench, pairs)
        for target, plan in pairs:
            try_plan(bench, target, plan)
        if not recipe.plan.from_goal and is_accuracy_bounded(recipe.goal) and not _is_any_accurate(bench):
            GoalSearch(bench).run(targets)
    if not bench.candidates:
        bench.candidates = bench.left_out
        bench.reporter.warn("nothing-fits", "No target could run the plan; each run says why")


def _is_any_accurate(bench: Bench) -> bool:
    return any(keeps_accuracy(candidate, bench.baseline, bench.recipe.goal) for candidate in bench.candidates)
