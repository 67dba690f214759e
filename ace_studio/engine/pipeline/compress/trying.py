"""One plan on one target: bound, built, compared with eager, and given its metric."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import cycle, islice

from torch import Tensor

from ace_studio.engine import evaluate, measure
from ace_studio.engine.examples.made_up import KINDS, NORMAL, of_kind
from ace_studio.engine.flow import Example
from ace_studio.engine.pipeline.compress.building import build
from ace_studio.engine.pipeline.compress.candidates import Candidate, keeps_accuracy, make_candidate, unsupported_op
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.metric import metric_facts
from ace_studio.engine.pipeline.compress.proving import SAME_DB, is_exact, prove
from ace_studio.engine.pipeline.compress.timing import time_beside
from ace_studio.engine.quantize.fidelity import fidelity_db
from ace_studio.engine.targets.base import Target
from ace_studio.engine.targets.partial.lower import SubgraphsLowered
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Plan
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
    for step in (check, prove, drop_if_lost, measure_accuracy):
        if candidate.runs:
            job.guarded(candidate, step)
            job.tell(candidate)
    enter(job, candidate)
    job.tell(candidate)
    return candidate


def check(job: CompressionJob, candidate: Candidate) -> None:
    """Compare a candidate with eager on every example, unseen sizes included.

    The fidelity is that of the user's examples: a sequence of length 1, which only proves that the graph takes it, may
    lie outside of all calibrated ranges. That of a plan with ranges is that of inputs that these were not found on.
    """
    assert candidate.lowered is not None
    job.reporter.phase(Phase.VERIFY, candidate.label)
    try:
        fidelity = evaluate.check_candidate(
            candidate.lowered,
            job.captured.examples,
            job.references,
            counted=len(job.captured.given_examples),
            suspect=_suspect(job),
        )
    except AceError as error:
        if error.problem.code is not ErrorCode.WRONG_CAPTURE or not _only_decides(job, candidate):
            raise
        return
    fidelity = _on_other_inputs(job, candidate) or fidelity
    candidate.note(
        # Where no output changes on the examples, nothing is known of what the precision loses.
        sqnr_db=None if fidelity.centred_db is None else round(fidelity.sqnr_db, 3),
        fidelity_db=None if fidelity.centred_db is None else round(fidelity.centred_db, 3),
        max_abs_error=fidelity.max_abs_error,
        agreement=fidelity.agreement,
    )
    if fidelity.sqnr_db < evaluate.RUINED_DB:
        _only_decides(job, candidate)


def _on_other_inputs(job: CompressionJob, candidate: Candidate) -> evaluate.Fidelity | None:
    """The fidelity on held-out examples, without data on the worst kind of made-up inputs; None if there are none."""
    assert candidate.lowered is not None
    if not any(precision.needs_calibration for precision in candidate.plan.precisions):
        return None
    if job.state.others is None:
        job.state.others = dict(_judges(job))
    found: dict[str, evaluate.Fidelity] = {}
    for name, (examples, expected) in job.state.others.items():
        with suppress(Exception):  # a runtime may refuse what it was not built for; the examples were compared before
            outputs = [evaluate.flat_outputs(candidate.lowered, one) for one in examples]
            found[name] = evaluate.fidelity_of(expected, outputs)
    candidate.worst_kind = min(found, key=lambda name: found[name].centred_db or 0.0, default="")
    return found.get(candidate.worst_kind)


def _judges(job: CompressionJob) -> Iterator[tuple[str, tuple[list[Example], list[list[Tensor]]]]]:
    """Inputs that no ranges were found on, with the model's outputs where these are finite and change."""
    given, kinds = job.calibration.held_out()[:MOST_JUDGES], [""]
    if not job.state.has_data:
        given = list(islice(cycle(job.captured.given_examples), MOST_MADE_UP))
        kinds = [kind for kind in KINDS if kind != NORMAL or job.loaded.data.calibration is not None]
    for kind in kinds:
        with suppress(Exception):  # the user's model may refuse made-up values in any way
            examples = [of_kind(kind, one, seed=at) if kind else one for at, one in enumerate(given)]
            expected = [evaluate.flat_outputs(job.reference, one) for one in examples]
            is_finite = all(bool(leaf.isfinite().all()) for outputs in expected for leaf in outputs)
            if examples and is_finite and fidelity_db(expected, expected) is not None:
                yield kind, (examples, expected)


def _only_decides(job: CompressionJob, candidate: Candidate) -> bool:
    """Whether the subgraphs of a model are right although the whole differs; their fidelity is then that of the run.

    Python between the subgraphs sorts, thresholds and selects: one rounding can change how many boxes there are.
    """
    if not isinstance(candidate.lowered, SubgraphsLowered):
        return False
    fidelity_db = candidate.lowered.subgraph_sqnr_db()
    if is_exact(candidate) and fidelity_db < SAME_DB:
        return False
    job.reporter.warn(
        "decisions",
        f"{candidate.label}: every subgraph agrees with eager ({fidelity_db:.1f} dB or better, shown as SQNR), but "
        "results of the whole differ where Python decides by values: compare by a metric of your own",
        where="[evaluate] function",
    )
    candidate.note(sqnr_db=round(fidelity_db, 3), fidelity_db=None)
    return True


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


MOST_JUDGES, MOST_MADE_UP = 8, 4
"""Examples that candidates are judged by: held-out ones, or of each kind of made-up ones."""
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
