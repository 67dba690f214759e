"""Goals: whether a run meets one, which bounds it misses, and which of several runs is best.

A latency counts as a share of the baseline's: 1 / `TargetRun.speedup`, or the ratio of medians where none was
measured. A bound whose figure was not measured is missed.

`rank` orders all runs: those that meet the goal come first, by what it optimizes; the others follow by their distance
to the bounds, then by accuracy. Every figure breaks a tie, so no other run beats the best one (`Figures.beats`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from ace_studio.records.recipes.recipe import Goal, Objective
from ace_studio.records.results import Baseline, SearchStep, TargetRun


class GoalBound(StrEnum):
    """The bounds of a goal; each value is the field of `Goal` that holds the limit."""

    DROP = "max_drop"
    SQNR = "min_sqnr_db"
    SIZE = "max_size_mb"
    LATENCY = "max_latency_ratio"


ACCURACY_BOUNDS = frozenset({GoalBound.DROP, GoalBound.SQNR})
COST_BOUNDS = frozenset({GoalBound.SIZE, GoalBound.LATENCY})


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a goal judges a run by, each in the unit of its bound; None: not measured."""

    drop: float | None = None
    """A gain is 0 unless its interval excludes a loss."""
    sqnr_db: float | None = None
    size_mb: float | None = None
    latency_ratio: float | None = None

    def beats(self, other: Figures) -> bool:
        """Whether it is at least as good in every figure and better in one; unknown is worse than any value."""
        own, others = cost(self, Objective.LATENCY), cost(other, Objective.LATENCY)
        return own != others and all(a <= b for a, b in zip(own, others, strict=True))


@dataclass(frozen=True)
class Miss:
    """One bound that a run misses."""

    bound: GoalBound
    value: float | None
    """None: not measured."""
    limit: float

    def __str__(self) -> str:
        """The miss in words, the same for messages, advice and charts."""
        name, value, limit = _WORDS[self.bound]
        shown = "was not measured" if self.value is None else value.format(self.value)
        return f"{name} {shown}; {limit.format(self.limit)}"


_WORDS = {
    GoalBound.DROP: ("the metric", "drops by {:.2%}", "at most {:.2%} is allowed"),
    GoalBound.SQNR: ("the fidelity", "is {:.1f} dB", "at least {:.1f} dB is required"),
    GoalBound.SIZE: ("the size", "is {:.3g} MB", "at most {:.3g} MB is allowed"),
    GoalBound.LATENCY: ("the latency", "is {:.3g} of the baseline's", "at most {:.3g} is allowed"),
}


def run_figures(run: TargetRun, baseline: Baseline | None) -> Figures:
    """The figures of a finished run."""
    return _figures(run, high=run.drop_high, ratio=latency_ratio(run, baseline))


def step_figures(step: SearchStep) -> Figures:
    """The figures of a step of a search."""
    return _figures(step, high=None, ratio=step.latency_ratio)


def _figures(found: TargetRun | SearchStep, *, high: float | None, ratio: float | None) -> Figures:
    """A drop below 0 is a gain only if ``high``, the end of its interval, is below 0 too."""
    drop = found.metric_drop
    return Figures(
        drop=0.0 if drop is not None and drop < 0.0 and (high is None or high >= 0.0) else drop,
        sqnr_db=found.fidelity,
        size_mb=None if found.size_bytes is None else found.size_bytes / 1e6,
        latency_ratio=ratio,
    )


def latency_ratio(run: TargetRun, baseline: Baseline | None) -> float | None:
    """Latency of a run as a share of the baseline's: that is 1 / speed-up."""
    if run.speedup:
        return 1.0 / run.speedup
    if run.latency_ms is None or baseline is None or baseline.latency_ms is None or not baseline.latency_ms.p50:
        return None
    return run.latency_ms.p50 / baseline.latency_ms.p50


EQUAL = 1.01
"""Programs that are the same differ up to this factor, by where their memory lies: intervals are widened by it."""
WORTHWHILE = 1.02
"""Smallest speed-up for which a run is preferred to one that computes exactly."""


def is_clearly_faster(speedup: float | None, low: float | None) -> bool:
    """Whether a measured speed-up is worthwhile; one whose interval contains 1 is not."""
    return speedup is not None and speedup >= WORTHWHILE and (low is None or low > 1.0)


def misses(figures: Figures, goal: Goal) -> tuple[Miss, ...]:
    """The bounds that are missed, in the order of `GoalBound`; empty if the goal is met."""
    checks = (
        (GoalBound.DROP, figures.drop, goal.max_drop),
        (GoalBound.SQNR, figures.sqnr_db, goal.min_sqnr_db),
        (GoalBound.SIZE, figures.size_mb, goal.max_size_mb),
        (GoalBound.LATENCY, figures.latency_ratio, goal.max_latency_ratio),
    )
    return tuple(
        Miss(bound, value, limit)
        for bound, value, limit in checks
        if limit is not None
        and (value is None or (value < limit if bound is GoalBound.SQNR else value > limit))
    )  # fmt: skip


def is_accurate(figures: Figures, goal: Goal) -> bool:
    """Whether the bounds on the metric and the fidelity are met."""
    return not any(miss.bound in ACCURACY_BOUNDS for miss in misses(figures, goal))


def is_affordable(figures: Figures, goal: Goal) -> bool:
    """Whether the bounds on size and latency are met."""
    return not any(miss.bound in COST_BOUNDS for miss in misses(figures, goal))


def goal_distance(figures: Figures, goal: Goal) -> float:
    """How far the missed bounds are, added up; 0 if the goal is met, infinite if a figure is unknown.

    1 is a factor of e in size or latency, 10 dB of fidelity, or the allowed drop once more (at least 1 %).
    """
    total = 0.0
    for miss in misses(figures, goal):
        if miss.value is None:
            return math.inf
        match miss.bound:
            case GoalBound.DROP:
                total += (miss.value - miss.limit) / max(miss.limit, 0.01)
            case GoalBound.SQNR:
                total += (miss.limit - miss.value) / 10.0
            case GoalBound.SIZE | GoalBound.LATENCY:
                total += math.log(miss.value / miss.limit)
    return total


def cost(figures: Figures, objective: Objective) -> tuple[float, float, float, float]:
    """What the objective wants least of comes first, then the other figures; less is better, unknown is infinite."""
    drop = math.inf if figures.drop is None else figures.drop
    noise_db = math.inf if figures.sqnr_db is None else -figures.sqnr_db
    size, latency = figures.size_mb or math.inf, figures.latency_ratio or math.inf
    match objective:
        case Objective.LATENCY:
            return (latency, size, drop, noise_db)
        case Objective.SIZE:
            return (size, latency, drop, noise_db)
        case Objective.ACCURACY:
            return (drop, noise_db, latency, size)


def rank(figures: Figures, goal: Goal) -> tuple[float, ...]:
    """The sort key of runs: the smallest is the best one that meets the goal, or else the nearest to it."""
    is_missed = bool(misses(figures, goal))
    objective = Objective.ACCURACY if is_missed else goal.optimize
    # A bound that is missed by the last digit of a float has distance 0.
    return (float(is_missed), goal_distance(figures, goal), *cost(figures, objective))
