"""Which target gets which plan, in what order, and which of the finished ones is the best that meets the goal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import torch

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.metrics import Score
from ace_studio.engine.plan import bind_plan, plan_problem
from ace_studio.engine.targets.base import Lowered, Target
from ace_studio.engine.targets.shared.support import unsupported_problem
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import Goal, ImproveMethod, Objective, Recipe
from ace_studio.records.results import Baseline, CaptureReport, ParetoPoint, RunStatus, SupportStatus, TargetRun

SEARCH_ORDER = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.BF16, Precision.FP32)
"""What a goal without a plan tries, the smallest first."""


@dataclass
class Candidate:
    """One target with one plan, and what is known of it so far."""

    target: Target
    plan: BoundPlan
    run: TargetRun
    lowered: Lowered | None = None
    kept: Mapping[str, str] = field(default_factory=dict)
    """Op id -> why the search kept it high."""
    score: Score | None = None
    """Its metric with what is known of single samples."""
    methods: tuple[ImproveMethod, ...] = ()
    """What is tried to improve its weights."""

    @property
    def label(self) -> str:
        """``openvino int8-static``: how progress and logs call it."""
        return f"{self.run.target} {self.run.precision}"

    def note(self, **changes: object) -> None:
        """Record findings in the run."""
        self.run = msgspec.structs.replace(self.run, **changes)

    def fail(self, problem: Problem) -> None:
        """Record that it cannot be had."""
        self.lowered = None
        self.note(status=RunStatus.FAILED, error=problem)


def select_targets(names: Sequence[str], targets: Mapping[str, Target]) -> list[Target]:
    """The rows of the registry that the recipe names; ``auto`` is every row here, but no code twice.

    Raises: AceError(USAGE) for a name that is no row.
    """
    chosen: list[Target] = []
    for name in names:
        if name == "auto":
            wanted = [target for target in targets.values() if target.is_in_auto and target.available().ok]
        elif name in targets:
            wanted = [targets[name]]
        else:
            raise AceError.of(
                ErrorCode.USAGE,
                f"There is no target named '{name}'",
                remedy="Use one of: auto, " + ", ".join(targets),
                where="[targets] names",
            )
        chosen.extend(target for target in wanted if target not in chosen)
    return chosen


def first_plans(recipe: Recipe) -> list[Plan]:
    """The plans that every target is tried with at first: the recipe's own, or one per precision if a goal decides."""
    if not recipe.plan.from_goal:
        return [recipe.plan]
    if not recipe.goal.has_bound:
        return [Plan(default=Precision.FP32)]
    wants_small = recipe.goal.optimize is Objective.SIZE or recipe.goal.max_size_mb is not None
    order = (Precision.INT4_WEIGHT, *SEARCH_ORDER) if wants_small else SEARCH_ORDER
    return [Plan(default=precision) for precision in order]


def is_accuracy_bounded(goal: Goal) -> bool:
    """Whether the goal says anything of accuracy."""
    return goal.max_drop is not None or goal.min_sqnr_db is not None


def make_candidate(target: Target, plan: Plan, table: GraphTable, *, device: torch.device) -> Candidate:
    """Bind a plan to a target. What cannot work at all is a candidate that is unavailable, with the reason."""
    run = TargetRun(target=target.name, status=RunStatus.OK, precision=plan.label)
    available = target.available()
    if not available.ok:
        empty = BoundPlan(plan=plan, precision={}, reason={})
        problem = Problem(
            code=ErrorCode.NOT_INSTALLED,
            what=f"{target.label} cannot be used here",
            why=available.reason,
            remedy=f"Install it with: {available.install}" if available.install else "Use another target.",
        )
        return Candidate(target, empty, msgspec.structs.replace(run, status=RunStatus.UNAVAILABLE, error=problem))
    bound = bind_plan(plan, table, op_problem=target.op_problem)
    candidate = Candidate(target, bound, run)
    device_reason = target.device_problem(device)
    reason = device_reason or target.precision_problem(plan.default) or plan_problem(plan, bound)
    if device_reason or (reason and not bound.precisions - {Precision.FP32}):
        problem = Problem(
            code=ErrorCode.UNSUPPORTED,
            what=f"{target.label} cannot run this plan ({plan.default})",
            why=reason,
            remedy="Choose another precision, another target or another device.",
        )
        candidate.note(status=RunStatus.UNAVAILABLE, error=problem)
    return candidate


def unsupported_op(target: Target, capture: CaptureReport, table: GraphTable) -> Problem | None:
    """Why a target cannot build the graph at all, known before it tries; None if it takes every op."""
    lacking = {str(SupportStatus.UNSUPPORTED)}
    able = [one.target for one in capture.support if not lacking & set(one.counts)]
    found = next((one for one in capture.support if one.target == target.name), None)
    return unsupported_problem(target.label, found.ops, table, others=", ".join(able)) if found else None


def goal_misses(run: TargetRun, baseline: Baseline, goal: Goal) -> list[str]:
    """What a finished run misses of the goal, each in words; empty if it meets all of it."""
    misses = []
    if goal.max_drop is not None and (run.metric_drop is None or run.metric_drop > goal.max_drop):
        shown = "was not measured" if run.metric_drop is None else f"drops by {run.metric_drop:.2%}"
        misses.append(f"the metric {shown}; at most {goal.max_drop:.2%} is allowed")
    if goal.min_sqnr_db is not None and (run.sqnr_db is None or run.sqnr_db < goal.min_sqnr_db):
        shown = "unknown" if run.sqnr_db is None else f"{run.sqnr_db:.1f} dB"
        misses.append(f"the fidelity is {shown}; at least {goal.min_sqnr_db:.1f} dB is asked for")
    if goal.max_size_mb is not None and (run.size_bytes is None or run.size_bytes > goal.max_size_mb * 1e6):
        shown = "unknown" if run.size_bytes is None else f"{run.size_bytes / 1e6:.3g} MB"
        misses.append(f"the size is {shown}; at most {goal.max_size_mb:.3g} MB is allowed")
    if goal.max_latency_ratio is not None:
        ratio = latency_ratio(run, baseline)
        if ratio is None or ratio > goal.max_latency_ratio:
            shown = "unknown" if ratio is None else f"{ratio:.3g} of the baseline's"
            misses.append(f"the latency is {shown}; at most {goal.max_latency_ratio:.3g} is allowed")
    return misses


_UNKNOWN_DISTANCE = 100.0


def goal_distance(run: TargetRun, baseline: Baseline, goal: Goal) -> float:
    """How far a run is from the bounds that it misses, added up; 0 if it meets all. 1 is a factor of e, or 10 dB."""
    distance = 0.0
    if goal.max_drop is not None:
        drop = 1.0 if run.metric_drop is None else run.metric_drop
        distance += max(0.0, drop - goal.max_drop) / max(goal.max_drop, 0.01)
    if goal.min_sqnr_db is not None:
        distance += max(0.0, goal.min_sqnr_db - (run.sqnr_db or 0.0)) / 10.0
    megabytes = run.size_bytes / 1e6 if run.size_bytes else None
    for value, bound in ((megabytes, goal.max_size_mb), (latency_ratio(run, baseline), goal.max_latency_ratio)):
        if bound is not None:
            distance += max(0.0, math.log(value / bound)) if value else _UNKNOWN_DISTANCE
    return distance


def keeps_accuracy(candidate: Candidate, baseline: Baseline, goal: Goal) -> bool:
    """Whether a built candidate meets the part of the goal that speaks of accuracy."""
    accuracy_only = Goal(max_drop=goal.max_drop, min_sqnr_db=goal.min_sqnr_db)
    is_built = candidate.run.status is RunStatus.OK and candidate.lowered is not None
    return is_built and not goal_misses(candidate.run, baseline, accuracy_only)


def latency_ratio(run: TargetRun, baseline: Baseline) -> float | None:
    """Latency of the run as a fraction of the baseline's."""
    if run.speedup:
        return 1.0 / run.speedup
    if run.latency_ms is None or baseline.latency_ms is None:
        return None
    return run.latency_ms.p50 / baseline.latency_ms.p50


def choose(runs: Sequence[TargetRun], baseline: Baseline, goal: Goal) -> tuple[int | None, bool | None]:
    """Index of the best run, and whether it meets the goal (None if there is no goal).

    Only runs whose artifact was verified count. If none meets the goal, the best found is the one that comes nearest
    to the bounds that it misses, then the one that keeps the most accuracy.
    """
    finished = [i for i, run in enumerate(runs) if run.status is RunStatus.OK and run.verified and run.latency_ms]
    if not finished:
        return None, False if goal.has_bound else None
    if not goal.has_bound:
        return min(finished, key=lambda i: _cost(runs[i], goal.optimize)), None
    meeting = [i for i in finished if not goal_misses(runs[i], baseline, goal)]
    if meeting:
        return min(meeting, key=lambda i: _cost(runs[i], goal.optimize)), True
    return min(finished, key=lambda i: (goal_distance(runs[i], baseline, goal), *_accuracy_cost(runs[i]))), False


def _cost(run: TargetRun, objective: Objective) -> tuple[float, ...]:
    latency = run.latency_ms.p50 if run.latency_ms else float("inf")
    size = float(run.size_bytes or 0) or float("inf")
    match objective:
        case Objective.LATENCY:
            return (latency, size)
        case Objective.SIZE:
            return (size, latency)
        case Objective.ACCURACY:
            return (*_accuracy_cost(run), latency)


def _accuracy_cost(run: TargetRun) -> tuple[float, float]:
    drop = run.metric_drop if run.metric_drop is not None else float("inf")
    if drop < 0.0 and (run.drop_high is None or run.drop_high >= 0.0):
        drop = 0.0  # a gain that is not beyond doubt is none
    return (drop, -(run.sqnr_db or 0.0))


def pareto_points(runs: Sequence[TargetRun]) -> tuple[ParetoPoint, ...]:
    """Every measured run as a point; on the front if none is at least as good in all of latency, size and accuracy.

    What a search built and dropped is a point too, by its few rounds; accuracy is the metric where there is one.
    """
    seen = (RunStatus.OK, RunStatus.DROPPED)
    measured = [(i, run) for i, run in enumerate(runs) if run.status in seen and run.latency_ms and run.size_bytes]
    has_metric = any(run.metric_drop is not None for _, run in measured)
    costs = {
        i: (*_cost(run, Objective.LATENCY), _accuracy_cost(run)[0] if has_metric else _accuracy_cost(run)[1])
        for i, run in measured
    }
    points = []
    for i, run in measured:
        assert run.latency_ms is not None
        assert run.size_bytes is not None
        beaten = any(
            other != i and all(a <= b for a, b in zip(costs[other], costs[i], strict=True)) and costs[other] != costs[i]
            for other in costs
        )
        points.append(
            ParetoPoint(
                run=i, latency_ms=run.latency_ms.p50, size_bytes=run.size_bytes, metric=run.metric, on_front=not beaten
            )
        )
    return tuple(points)
