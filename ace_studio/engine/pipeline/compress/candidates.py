"""Candidates: which target gets which plan, in what order, and which finished run is best."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec
import torch

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.metrics import Score
from ace_studio.engine.plan import bind_plan, plan_problem
from ace_studio.engine.targets.base import Lowered, OpActual, Target
from ace_studio.engine.targets.shared.support import unsupported_problem
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.goals import WORTHWHILE, Figures, is_accurate, is_clearly_faster, misses, rank, run_figures
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import Goal, ImproveMethod, Objective, Recipe
from ace_studio.records.results import Baseline, CaptureReport, ParetoPoint, RunStatus, SupportStatus, TargetRun
from ace_studio.records.results.words import ratio_words
from ace_studio.records.targets import targets_for

SEARCH_ORDER = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.BF16, Precision.FP32)
"""What a goal without a plan tries."""


@dataclass
class Candidate:
    """One target with one plan: its run so far and, if built, the lowered model."""

    target: Target
    plan: BoundPlan
    run: TargetRun
    lowered: Lowered | None = None
    kept: Mapping[str, str] = field(default_factory=dict)
    """Op id -> why the search kept it at a high precision."""
    score: Score | None = None
    """Its metric with the samples."""
    methods: tuple[ImproveMethod, ...] = ()
    """What may improve its weights."""
    weights_for: Plan | None = None
    """The plan that its weights are improved for; None for its own. Mixtures of a search share those of all ops low."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of its target: how it is built otherwise than usual."""
    worst_kind: str = ""
    """The made-up inputs that its fidelity is that of, if there are no data."""
    _actual: tuple[Lowered, list[OpActual]] | None = None

    def read_back(self) -> list[OpActual]:
        """What the runtime does with every op of the lowered model; it is asked once, because that may take seconds."""
        assert self.lowered is not None
        if self._actual is None or self._actual[0] is not self.lowered:
            self._actual = self.lowered, self.lowered.read_back()
        return self._actual[1]

    @property
    def runs(self) -> bool:
        """Whether it is built and can be run on this machine."""
        return self.lowered is not None and not self.run.not_run

    @property
    def label(self) -> str:
        """``openvino int8-static``, for progress and messages."""
        return f"{self.run.target} {self.run.precision}"

    def note(self, **changes: object) -> None:
        """Record findings in the run."""
        self.run = msgspec.structs.replace(self.run, **changes)

    def fail(self, problem: Problem) -> None:
        """Record why it failed."""
        self.lowered = None
        self.note(status=RunStatus.FAILED, error=problem)


def first_plans(recipe: Recipe, *, has_data: bool = True) -> list[Plan]:
    """The plans that every target begins with: the recipe's own, or one per precision if a goal decides."""
    if not recipe.plan.from_goal:
        return [recipe.plan]
    if not recipe.goal.has_bound:
        return [Plan(default=Precision.FP32)]
    order = (Precision.INT4_WEIGHT, *SEARCH_ORDER) if recipe.goal.wants_small else SEARCH_ORDER
    return [Plan(default=precision) for precision in order if has_data or not precision.needs_calibration]


def make_candidate(target: Target, plan: Plan, table: GraphTable, *, device: torch.device) -> Candidate:
    """Bind a plan to a target. A plan that cannot run there gives an unavailable candidate with the reason."""
    run = TargetRun(target=target.name, status=RunStatus.OK, precision=plan.label)
    available = target.available()
    if not available.ok:
        empty = BoundPlan(plan)
        problem = Problem(
            code=ErrorCode.NOT_INSTALLED,
            what=f"{target.label} cannot be used here",
            why=available.reason,
            remedy=f"Install it with: {available.install}" if available.install else "Use another target.",
        )
        return Candidate(target, empty, msgspec.structs.replace(run, status=RunStatus.UNAVAILABLE, error=problem))
    bound = bind_plan(plan, table, op_problem=target.op_problem)
    candidate = Candidate(target, bound, msgspec.structs.replace(run, not_run=target.run_problem()))
    on_device = (target.precision_problem_on(device, one) for one in sorted(bound.precisions))
    device_reason = target.device_problem(device) or next(filter(None, on_device), "")
    reason = device_reason or target.precision_problem(plan.default) or plan_problem(bound)
    if device_reason or (reason and not bound.precisions - {Precision.FP32}):
        problem = Problem(
            code=ErrorCode.UNSUPPORTED,
            what=f"{target.label} cannot run this plan ({plan.default})",
            why=reason,
            remedy="Choose another precision, another target or another device.",
        )
        candidate.note(status=RunStatus.UNAVAILABLE, error=problem)
    return candidate


def not_searched(target: Target) -> Candidate:
    """What a search for a goal leaves of a target whose programs cannot be run here: a search goes by measurements."""
    problem = Problem(
        code=ErrorCode.UNSUPPORTED,
        what=f"{target.label} takes no part in a search for a goal on this machine",
        why=target.run_problem(),
        remedy="Give a [plan]: it is then built and saved, without being run.",
    )
    return Candidate(
        target, BoundPlan(Plan()), TargetRun(target=target.name, status=RunStatus.UNAVAILABLE, error=problem)
    )


def unsupported_op(target: Target, capture: CaptureReport, table: GraphTable) -> Problem | None:
    """Why a target cannot build the graph, known before it tries; None if it takes every op."""
    able = [one.target for one in capture.support if str(SupportStatus.UNSUPPORTED) not in one.counts]
    own = next((one for one in capture.support if one.target == target.name), None)
    return unsupported_problem(target.label, own.ops, table, others=", ".join(able)) if own else None


def keeps_accuracy(candidate: Candidate, baseline: Baseline, goal: Goal) -> bool:
    """Whether a candidate is built and meets the accuracy bounds of the goal."""
    is_built = candidate.run.status is RunStatus.OK and candidate.runs
    return is_built and is_accurate(run_figures(candidate.run, baseline), goal)


def original_target(frontend: str) -> str:
    """Name of the target that runs a model of this frontend as the baseline does."""
    return targets_for(frontend)[0]


def choose(runs: Sequence[TargetRun], baseline: Baseline, goal: Goal) -> tuple[int | None, bool | None]:
    """Index of the best run by `goals.rank`, and whether it meets the goal (None if the goal has no bound).

    Only measured runs whose artifact was verified count. Of runs that are equal but for a gain in the metric within its
    interval, the one that gained more is taken. Where the fastest is wanted, the most accurate of those is taken that
    are not worthwhile slower (`WORTHWHILE`): which of them is the fastest is chance. fp32 is left to `prefer_exact`.
    """
    finished = _finished(runs, baseline)
    best = min(finished, key=partial(_order, finished, runs, goal), default=None)
    if best is not None and goal.optimize is Objective.LATENCY and not runs[best].is_exact:
        most = (finished[best].latency_ratio or math.inf) * WORTHWHILE
        near = [i for i, one in finished.items() if (one.latency_ratio or math.inf) <= most]
        accurate = msgspec.structs.replace(goal, optimize=Objective.ACCURACY)
        order = partial(_order, finished, runs, accurate)
        best = min((i for i in near if not runs[i].is_exact), key=order)
    if not goal.has_bound:
        return best, None
    return best, best is not None and not misses(finished[best], goal)


def _order(finished: Mapping[int, Figures], runs: Sequence[TargetRun], goal: Goal, i: int) -> tuple[float, ...]:
    return (*rank(finished[i], goal), runs[i].metric_drop or 0.0)


def _finished(runs: Sequence[TargetRun], baseline: Baseline) -> dict[int, Figures]:
    return {
        i: run_figures(run, baseline)
        for i, run in enumerate(runs)
        if run.status is RunStatus.OK and run.verified and run.latency_ms
    }


def prefer_exact(
    best: int, runs: Sequence[TargetRun], baseline: Baseline, goal: Goal, *, original: str
) -> tuple[int, str]:
    """What to choose if speed was wanted and the best run has none: its target's fp32, or the original; and why.

    Where the goal is missed, the nearest run stays chosen. A run that beats the exact one is taken instead of it.

    Args:
        best: What `choose` gave.
        runs: All runs.
        baseline: What the speed-ups refer to.
        goal: A run that misses it is not taken instead.
        original: The target that runs the model as the baseline does.
    """
    finished, reasons = _finished(runs, baseline), []
    if runs[best].speed_undecided or misses(finished[best], goal):
        return best, ""
    order = partial(_order, finished, runs, goal)
    for name, field_name in ((runs[best].target, "float_speedup"), (original, "speedup")):
        run = runs[best]
        floats = [i for i in finished if runs[i].target == name and runs[i].is_exact]
        exact = best if best in floats else min(floats, key=order, default=None)
        speedup, low = getattr(run, field_name), getattr(run, f"{field_name}_low")
        if exact in (None, best) or speedup is None or is_clearly_faster(speedup, low):
            continue
        if not misses(finished[exact], goal):
            other = f"{name} fp32" if field_name == "float_speedup" else "the original"
            slow = f"{run.target} {run.built_words} is not clearly faster than {other}"
            reasons.append(f"{slow}, {ratio_words(run, field_name)}")
            best = exact
    if reasons:
        figures, same = finished[best], runs[best].agreement or 0.0
        better = (i for i, one in finished.items() if one == figures or one.beats(figures))
        chosen = min((best, *(i for i in better if (runs[i].agreement or 0.0) >= same)), key=order)
        if chosen != best:
            reasons.append(f"in no figure is it worse than {runs[best].target} {runs[best].precision}")
            best = chosen
    return best, "; ".join(reasons)


def slower_words(run: TargetRun, *, than_float: bool = True) -> str:
    """What a run is clearly slower than, in words; empty if it is not, or if that is not decided.

    ``than_float=False`` leaves out fp32 there, also where that is the original.
    """
    if run.speed_undecided:
        return ""
    is_original = run.float_speedup == run.speedup  # fp32 there
    others = [("the original", run.speedup, run.speedup_high)] if than_float or not is_original else []
    if than_float and not is_original:
        others.append(("fp32 there", run.float_speedup, run.float_speedup_high))
    found = [f"{name} ({speed:.2f}x)" for name, speed, high in others if speed and (high or speed) < 1.0]
    return " and ".join(found)


def pareto_points(runs: Sequence[TargetRun], baseline: Baseline) -> tuple[ParetoPoint, ...]:
    """Every measured run as a point; on the front if no other run beats it in latency, size and accuracy.

    Runs that a search built and dropped are points too, by their few rounds. Accuracy is the metric where any run has
    one, else the fidelity.
    """
    has_metric = any(run.metric_drop is not None for run in runs)
    figures: dict[int, Figures] = {}
    for i, run in enumerate(runs):
        if run.status in (RunStatus.OK, RunStatus.DROPPED) and run.latency_ms and run.size_bytes:
            own = run_figures(run, baseline)
            figures[i] = replace(own, sqnr_db=None) if has_metric else own
    return tuple(
        ParetoPoint(
            run=i,
            latency_ms=run.latency_ms.p50,
            size_bytes=run.size_bytes,
            metric=run.metric,
            on_front=not any(other.beats(figures[i]) for other in figures.values()),
        )
        for i, run in enumerate(runs)
        if i in figures and run.latency_ms and run.size_bytes
    )
