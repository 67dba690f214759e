"""One plan on one target: bound, built, compared with eager, and given its metric."""

import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from ace_studio.engine import evaluate, measure
from ace_studio.engine.pipeline.builders import Wanted
from ace_studio.engine.pipeline.compress.candidates import Candidate, keeps_accuracy, make_candidate, unsupported_op
from ace_studio.engine.pipeline.compress.improving import ranges_of
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.metric import metric_facts
from ace_studio.engine.pipeline.compress.timing import time_beside
from ace_studio.engine.targets.base import Lowered, LoweringJob, Target
from ace_studio.engine.targets.partial.lower import SubgraphsLowered, lower_subgraphs
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod, Objective
from ace_studio.records.results import RunStatus, Warning

UNREPEATABLE = frozenset({"random", "dropout-in-eval"})
"""Codes of capture warnings that explain why two calls differ."""


def try_plan(
    job: CompressionJob,
    target: Target,
    plan: Plan,
    *,
    methods: tuple[ImproveMethod, ...] | None = None,
    weights_for: Plan | None = None,
    options: Mapping[str, str] = {},
) -> Candidate:
    """Make the candidate and find out how accurate it is; failures are recorded in its run.

    Args:
        job: The job.
        target: Where it is to run.
        plan: At which precisions.
        methods: What is tried to improve the weights; None for what the recipe says.
        weights_for: The plan that the methods improve the weights for; None for ``plan``.
        options: One of the target's `options`, or nothing.
    """
    candidate = make_candidate(target, plan, job.captured.table, device=job.captured.device)
    candidate.methods = job.recipe.improve.methods if methods is None else methods
    candidate.weights_for, candidate.options = weights_for, options
    candidate.note(options=dict(options))
    if candidate.run.status is RunStatus.UNAVAILABLE and target.name not in job.recipe.targets.names:
        job.state.left_out.append(candidate)  # auto takes only targets that fit
        return candidate
    job.state.candidates.append(candidate)
    job.tell(candidate)
    # a subgraph that cannot be built stays eager
    if job.captured.is_whole and (problem := unsupported_op(target, job.capture_report, job.captured.table)):
        candidate.fail(problem)
    if not job.captured.is_whole and (why := candidate.run.not_run):
        what = f"{target.label} takes whole graphs only on this machine"
        remedy = "Let the whole model be captured, or use another target."
        candidate.fail(Problem(code=ErrorCode.UNSUPPORTED, what=what, why=why, remedy=remedy))
    if candidate.run.status is RunStatus.OK and (crash := job.state.lost.get(target.name)) is not None:
        candidate.fail(crash)
    if candidate.run.status is RunStatus.OK:
        job.guarded(candidate, build)
    for step in (check, refuse_if_misread, drop_if_lost, measure_accuracy):
        if candidate.runs:
            job.guarded(candidate, step)
            job.tell(candidate)
    enter(job, candidate)
    job.tell(candidate)
    return candidate


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


def check(job: CompressionJob, candidate: Candidate) -> None:
    """Compare a candidate with eager on every example, unseen sizes included.

    Low precisions are judged by the user's examples: a sequence of length 1, which only proves that the graph takes
    it, may lie outside of all calibrated ranges. At fp32 every size must come close.
    """
    assert candidate.lowered is not None
    is_exact = candidate.plan.precisions <= {Precision.FP32}
    job.reporter.phase(Phase.VERIFY, candidate.label)
    try:
        fidelity = evaluate.check_candidate(
            candidate.lowered,
            job.captured.examples,
            job.references,
            counted=None if is_exact else len(job.captured.given_examples),
            suspect=_suspect(job),
        )
        if is_exact:
            evaluate.check_same_arithmetic(_fidelity_to_captured(job, candidate) or fidelity)
    except AceError as error:
        _accept_decisions(job, candidate, error)
        return
    candidate.note(
        sqnr_db=round(fidelity.sqnr_db, 3), max_abs_error=fidelity.max_abs_error, agreement=fidelity.agreement
    )


def refuse_if_misread(job: CompressionJob, candidate: Candidate) -> None:
    """Refuse a ruined candidate if its target does not compute what eager does at fp32 either.

    Raises: AceError(WRONG_CAPTURE).
    """
    ruined = candidate.run.sqnr_db is not None and candidate.run.sqnr_db < evaluate.RUINED_DB
    if not ruined or candidate.plan.precisions <= {Precision.FP32}:
        return
    name = candidate.target.name
    if name not in job.state.misread:
        job.state.misread[name] = _problem_at_fp32(job, candidate)
    if (problem := job.state.misread[name]) is not None:
        raise AceError(problem)


def _problem_at_fp32(job: CompressionJob, beside: Candidate) -> Problem | None:
    """Why fp32 of a candidate's target is wrong; None if it is right, or cannot be built, which proves nothing."""
    try:
        built_at_fp32(job, beside)
    except AceError as error:
        if error.problem.code is ErrorCode.CANCELLED:
            raise
        return error.problem if error.problem.code is ErrorCode.WRONG_CAPTURE else None
    except Exception:  # noqa: BLE001 - border: a runtime's own library may raise anything
        return None
    return None


def built_at_fp32(job: CompressionJob, beside: Candidate) -> Lowered | None:
    """fp32 of a candidate's target, compared with eager; None if the target cannot do it.

    Raises: AceError as `lower` and `check` do.
    """
    made = make_candidate(beside.target, Plan(default=Precision.FP32), job.captured.table, device=job.captured.device)
    if made.run.status is not RunStatus.OK:
        return None
    job.reporter.phase(Phase.LOWER, f"{made.label}, to compare with")
    quiet = replace(job, reporter=job.reporter.quiet())  # what is warned of here concerns nothing that is saved
    made.lowered = lower(quiet, made)
    check(quiet, made)
    return made.lowered


def _fidelity_to_captured(job: CompressionJob, candidate: Candidate) -> evaluate.Fidelity | None:
    """Fidelity to the captured eager module, if that is a pruned or trained copy; else None."""
    assert candidate.lowered is not None
    if job.loaded.original is None:
        return None
    return evaluate.check_candidate(
        candidate.lowered, job.captured.examples, job.captured_outputs, suspect=_suspect(job)
    )


def _accept_decisions(job: CompressionJob, candidate: Candidate, error: AceError) -> None:
    """Accept a model in subgraphs whose subgraphs are right although the whole differs; else raise ``error``.

    Python between the subgraphs sorts, thresholds and selects: one rounding can change how many boxes there are.
    """
    if error.problem.code is not ErrorCode.WRONG_CAPTURE or not isinstance(candidate.lowered, SubgraphsLowered):
        raise error
    fidelity_db = candidate.lowered.subgraph_sqnr_db()
    if candidate.plan.precisions <= {Precision.FP32} and fidelity_db < evaluate.MIN_FP32_SQNR_DB:
        raise error
    job.reporter.warn(
        "decisions",
        f"{candidate.label}: every subgraph agrees with eager ({fidelity_db:.1f} dB or better, shown as SQNR), but "
        "results of the whole differ where Python decides by values: compare by a metric of your own",
        where="[evaluate] function",
    )
    candidate.note(sqnr_db=round(fidelity_db, 3))


def _suspect(job: CompressionJob) -> str:
    """The capture's warnings that explain why a model differs from call to call, in words."""
    found = [one for one in job.capture_report.warnings if one.code in UNREPEATABLE]
    return "; ".join(f"{one.what} ({one.where})" if one.where else one.what for one in found)


def measure_accuracy(job: CompressionJob, candidate: Candidate) -> None:
    """Measure the metric and its drop against the baseline."""
    assert candidate.lowered is not None
    score = job.score_of(candidate.lowered, what=candidate.label)
    if score is None:
        return
    candidate.score = score
    candidate.note(**metric_facts(job, score))


RACE_ROUNDS = 8
"""An even number: every second round has the opposite order."""
CLEARLY_SLOWER = 1.3
"""A candidate has lost if the low end of the 95 % interval of its time over the leader's is above this."""


def drop_if_lost(job: CompressionJob, candidate: Candidate) -> None:
    """Race a built candidate against the leader; a loser is dropped, with the figures in its run."""
    leader = _leader(job)
    if leader is None or not _is_race(job):
        return
    job.reporter.phase(Phase.MEASURE, f"{candidate.label} against {leader.label}")
    its, own = time_beside(job, leader.lowered, candidate, rounds=RACE_ROUNDS)
    times = measure.ratio_of(own, its)
    if times.low > CLEARLY_SLOWER:
        reason = f"{times.median:.1f} times slower than {leader.label}, which meets the goal (a quick race)"
        candidate.lowered = None
        candidate.note(
            status=RunStatus.DROPPED,
            latency_ms=own.latency(),
            warnings=(*candidate.run.warnings, Warning(code="dropped", what=reason)),
        )


def enter(job: CompressionJob, candidate: Candidate) -> None:
    """Make a candidate that keeps the accuracy the leader: it was not clearly slower than the last one."""
    if keeps_accuracy(candidate, job.state.baseline, job.recipe.goal):
        job.state.leader = candidate


def _leader(job: CompressionJob) -> Candidate | None:
    return job.state.leader if job.state.leader is not None and job.state.leader.lowered is not None else None


def _is_race(job: CompressionJob) -> bool:
    """Whether only speed decides among the accurate candidates."""
    recipe = job.recipe
    is_search = recipe.plan.from_goal and recipe.goal.has_bound and "auto" in recipe.targets.names
    return is_search and recipe.goal.optimize is Objective.LATENCY and recipe.goal.max_size_mb is None
