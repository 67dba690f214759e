"""Builds one candidate: in this process, or taken from another one that built it beside."""

import shutil
import tempfile
import time
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from ace_studio.engine.pipeline.builders import Wanted
from ace_studio.engine.pipeline.compress.candidates import Candidate, make_candidate, unsupported_op
from ace_studio.engine.pipeline.compress.improving import ranges_of
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.targets.base import Lowered, LoweringJob, Target
from ace_studio.engine.targets.partial.lower import lower_subgraphs
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.results import RunStatus


def expect_builds(job: CompressionJob, pairs: Sequence[tuple[Target, Plan]]) -> None:
    """Announce the plans that will be tried, in that order, so that other processes can build them."""
    if job.builders is None or job.recipe.improve.methods:
        return  # the improved capture exists in this process only
    table, device = job.captured.table, job.captured.device
    awaited = [
        (target, plan)
        for target, plan in pairs
        if not (target.row.is_soon_built or target.run_problem()) and target.name not in job.state.lost
    ]
    made = [make_candidate(target, plan, table, device=device) for target, plan in awaited]
    job.builders.expect(
        [
            Wanted(one.target, one.plan)
            for one in made
            if one.run.status is RunStatus.OK and not unsupported_op(one.target, job.capture_report, table)
        ]
    )


def _take_from_builders(job: CompressionJob, candidate: Candidate) -> bool:
    """Open the build of another process, waiting for it; False if this process has to build."""
    if job.builders is None or candidate.methods or candidate.options:
        return False
    taken = job.builders.take(Wanted(candidate.target, candidate.plan))
    if taken is None:
        return False
    candidate.lowered, built = taken
    job.improvements.add_by_target(built.improvements)
    candidate.note(build_seconds=round(built.seconds, 3))
    return True


def build(job: CompressionJob, candidate: Candidate) -> None:
    """Lower the plan to the target."""
    job.reporter.phase(Phase.LOWER, candidate.label)
    if _take_from_builders(job, candidate):
        return
    started = time.monotonic()
    candidate.lowered = lower(job, candidate)
    if job.captured.first_state:
        candidate.lowered.begin_again()  # calibration and the first call of a compiler may have changed it
    candidate.note(build_seconds=round(time.monotonic() - started, 3))


def lower(job: CompressionJob, candidate: Candidate) -> Lowered:
    """Build the candidate in this process, with a scratch folder that nobody else can write to."""
    Path(tempfile.gettempdir()).mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have cleaned up
    folder = Path(tempfile.mkdtemp(prefix="ace-build-"))
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    with ExitStack() as on_failure:
        on_failure.callback(remove)
        lowered = _lowered_in(folder, job, candidate)
        weakref.finalize(lowered, remove)
        on_failure.pop_all()
    return lowered


def _lowered_in(folder: Path, job: CompressionJob, candidate: Candidate) -> Lowered:
    first = job.captured.graphs()[0].captured
    improved = replace(candidate.plan, plan=candidate.weights_for or candidate.plan.plan)
    captured, shared = job.improvements.capture_for(improved, candidate.methods, first, job.shared)
    lowering = LoweringJob(
        captured=captured,
        plan=candidate.plan,
        calibration=job.calibration,
        threads=job.threads,
        device=job.captured.device,
        folder=folder,
        reporter=job.reporter,
        ranges=ranges_of(job.recipe),
        sizes=job.recipe.targets.sizes,
        shared=shared,
        options=candidate.options,
        library_methods=job.improvements.methods_left(improved, candidate.methods),
    )
    if job.captured.is_whole:
        lowered = candidate.target.lower(lowering)
    else:
        lowered = lower_subgraphs(candidate.target, job.captured, lowering)
    job.improvements.add_by_target(lowering.improvements)
    return lowered
