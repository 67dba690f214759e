"""Tries plans on targets, or searches for the goal."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ace_studio.engine.pipeline.compress.candidates import first_plans, keeps_accuracy
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.search.run import GoalSearch
from ace_studio.engine.pipeline.compress.trying import expect_builds, try_plan
from ace_studio.engine.targets.base import Target


def try_plans(job: CompressionJob, targets: Sequence[Target]) -> None:
    """Try the recipe's plan on every target; search if the goal decides the plan, or if no run is accurate enough."""
    recipe = job.recipe
    if recipe.plan.from_goal and recipe.goal.has_bound:
        GoalSearch(job).run(targets)
    else:
        pairs = list(itertools.product(targets, first_plans(recipe)))
        expect_builds(job, pairs)
        for target, plan in pairs:
            try_plan(job, target, plan)
        if not recipe.plan.from_goal and recipe.goal.bounds_accuracy and not _is_any_accurate(job):
            GoalSearch(job).run(targets)
    if not job.state.candidates:
        job.state.candidates = job.state.left_out
        job.reporter.warn("nothing-fits", "No target could run the plan; each run says why")


def _is_any_accurate(job: CompressionJob) -> bool:
    return any(keeps_accuracy(candidate, job.state.baseline, job.recipe.goal) for candidate in job.state.candidates)
