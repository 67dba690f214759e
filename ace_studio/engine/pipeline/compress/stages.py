"""The order of the stages of a compression job."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import torch

from ace_studio.engine.pipeline.builders import Builders, BuildJob
from ace_studio.engine.pipeline.compress.batches import measure_batches
from ace_studio.engine.pipeline.compress.candidates import first_plans, keeps_accuracy
from ace_studio.engine.pipeline.compress.choosing import Outcome, conclude
from ace_studio.engine.pipeline.compress.decoding import measure_decoding
from ace_studio.engine.pipeline.compress.improving import ranges_of
from ace_studio.engine.pipeline.compress.job import CompressionJob, state_bytes
from ace_studio.engine.pipeline.compress.metric import baseline_facts
from ace_studio.engine.pipeline.compress.profiling import profile_all
from ace_studio.engine.pipeline.compress.saving import export_all
from ace_studio.engine.pipeline.compress.search.run import GoalSearch
from ace_studio.engine.pipeline.compress.sensitivity import sense_once
from ace_studio.engine.pipeline.compress.timing import measure_latency
from ace_studio.engine.pipeline.compress.trying import expect_builds, try_plan
from ace_studio.engine.pipeline.compress.worst import find_worst
from ace_studio.engine.pipeline.sensitivity import scanned_precisions
from ace_studio.engine.targets import select_targets
from ace_studio.engine.targets.base import Target
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import ScanChoice


def run_stages(job: CompressionJob) -> Outcome:
    """Run all stages; a target that fails is a failed run, not a failed job."""
    _check_goal(job)
    targets = select_targets(job.recipe.targets.names)
    threads_before = torch.get_num_threads()
    torch.set_num_threads(job.threads)
    builders = _builders_for(job)
    job = replace(job, builders=builders)
    try:
        _measure_baseline(job)
        _check_calibration(job)
        if job.recipe.sensitivity.scan is ScanChoice.ON:
            sense_once(job, scanned_precisions(job.recipe))
        try_plans(job, targets)
        measure_latency(job)
        measure_batches(job)
        measure_decoding(job)
        export_all(job)
        profile_all(job)
        find_worst(job)
        return conclude(job)
    finally:
        if builders is not None:
            builders.close()
        torch.set_num_threads(threads_before)


def _builders_for(job: CompressionJob) -> Builders | None:
    """Processes that build beside this one: for whole torch graphs on the CPU; a GPU's memory is not shared."""
    captured = job.captured.torch_graph
    if captured is None or captured.device.type != "cpu":
        return None
    return Builders(
        BuildJob(
            captured=captured,
            calibration=job.calibration,
            threads=job.threads,
            ranges=ranges_of(job.recipe),
            sizes=job.recipe.targets.sizes,
            folder=job.output / ".builds",
            reporter=job.reporter,
            weight_bytes=state_bytes(captured.module),
        )
    )


def _check_goal(job: CompressionJob) -> None:
    if job.recipe.goal.max_drop is not None and job.loaded.data.evaluate is None:
        raise AceError.of(
            ErrorCode.NO_DATA,
            "The goal limits the drop of the metric, but there is no metric",
            why="[goal] max_drop needs a metric, and [evaluate] names neither a function nor a metric with data",
            remedy="Name one of them in [evaluate], or use min_sqnr_db, which needs no labels.",
            where="[goal] max_drop",
        )


def _measure_baseline(job: CompressionJob) -> None:
    """Size and metric of the eager module; its latency is measured with the candidates'."""
    score = job.score_of(job.reference, what=job.state.baseline.name)
    job.state.baseline_score = score
    size = state_bytes(job.reference)
    job.state.baseline = msgspec.structs.replace(job.state.baseline, size_bytes=size, **baseline_facts(score))
    job.tell_baseline()


def _check_calibration(job: CompressionJob) -> None:
    """Read the calibration data before anything is built, so that an error in them ends the job early."""
    if job.loaded.data.calibration is not None and any(plan.needs_calibration for plan in first_plans(job.recipe)):
        job.calibration()


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
