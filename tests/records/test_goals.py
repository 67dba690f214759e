"""Which bounds a run misses, how far it is from them, and which run is best."""

import math

import pytest

from ace_studio.records import goals
from ace_studio.records.recipes.recipe import Goal, Objective
from ace_studio.records.results import Baseline, Latency, RunStatus, SearchStep, TargetRun

FIGURES = goals.Figures(drop=0.05, sqnr_db=30.0, size_mb=2.0, latency_ratio=0.5)
BASELINE = Baseline(latency_ms=Latency(p10=9.0, p50=10.0, p90=11.0, n=10))
RUN = TargetRun(
    target="t", status=RunStatus.OK, latency_ms=Latency(p10=7.0, p50=7.2, p90=7.5, n=10), speedup=1.45,
    size_bytes=3_000_000, metric_drop=-0.01,
)  # fmt: skip


def test_the_speed_up_counts_and_the_medians_only_where_there_is_none():
    assert goals.run_figures(RUN, BASELINE).latency_ratio == pytest.approx(1 / 1.45)
    unmatched = TargetRun(target="t", status=RunStatus.OK, latency_ms=RUN.latency_ms)
    assert goals.run_figures(unmatched, BASELINE).latency_ratio == pytest.approx(0.72)
    assert goals.run_figures(unmatched, None).latency_ratio is None


def test_a_gain_that_the_interval_does_not_confirm_is_no_gain():
    assert goals.run_figures(RUN, BASELINE).drop == 0.0
    confirmed = TargetRun(target="t", status=RunStatus.OK, metric_drop=-0.01, drop_high=-0.002)
    assert goals.run_figures(confirmed, BASELINE).drop == -0.01


def test_a_step_of_a_search_is_judged_by_the_same_figures():
    step = SearchStep(target="t", low="bf16", metric_drop=0.05, sqnr_db=30.0, size_bytes=2_000_000, latency_ratio=0.5)
    assert goals.step_figures(step) == FIGURES


@pytest.mark.parametrize(
    ("goal", "bound", "words"),
    [
        (Goal(max_drop=0.01), goals.GoalBound.DROP, "the metric drops by 5.00%; at most 1.00% is allowed"),
        (Goal(min_sqnr_db=40), goals.GoalBound.SQNR, "the fidelity is 30.0 dB; at least 40.0 dB is required"),
        (Goal(max_size_mb=0.0001), goals.GoalBound.SIZE, "the size is 2 MB; at most 0.0001 MB is allowed"),
        (Goal(max_latency_ratio=0.1), goals.GoalBound.LATENCY, "the latency is 0.5 of the baseline's; at most 0.1 is"),
    ],
)  # fmt: skip
def test_each_missed_bound_has_a_code_and_words(goal, bound, words):
    (miss,) = goals.misses(FIGURES, goal)
    assert miss.bound is bound
    assert str(miss).startswith(words)
    assert getattr(goal, bound) == miss.limit


def test_a_goal_whose_limits_are_reached_exactly_is_met():
    assert goals.misses(FIGURES, Goal(max_drop=0.05, min_sqnr_db=30, max_size_mb=2, max_latency_ratio=0.5)) == ()


def test_what_was_not_measured_misses_every_bound_on_it_and_is_infinitely_far():
    goal = Goal(max_drop=0.5, min_sqnr_db=1, max_size_mb=9, max_latency_ratio=9)
    found = goals.misses(goals.Figures(), goal)
    assert [miss.bound for miss in found] == list(goals.GoalBound)
    assert all("was not measured" in str(miss) for miss in found)
    assert goals.goal_distance(goals.Figures(), goal) == math.inf


def test_accuracy_and_cost_are_judged_apart():
    goal = Goal(max_drop=0.01, max_size_mb=5.0)
    assert not goals.is_accurate(FIGURES, goal)
    assert goals.is_affordable(FIGURES, goal)
    assert not goals.is_affordable(FIGURES, Goal(max_latency_ratio=0.4))


def test_the_distance_adds_up_decibels_factors_and_drops():
    assert goals.goal_distance(FIGURES, Goal(max_drop=0.05)) == 0.0
    assert goals.goal_distance(FIGURES, Goal(min_sqnr_db=50)) == pytest.approx(2.0)
    assert goals.goal_distance(FIGURES, Goal(max_size_mb=2.0 / math.e, max_drop=0.025)) == pytest.approx(1.0 + 1.0)


@pytest.mark.parametrize("objective", Objective)
def test_what_meets_the_goal_ranks_before_what_misses_it(objective):
    goal = Goal(min_sqnr_db=20.0, optimize=objective)
    tempting = goals.Figures(drop=0.0, sqnr_db=19.0, size_mb=0.1, latency_ratio=0.01)
    assert goals.rank(FIGURES, goal) < goals.rank(tempting, goal)


def test_where_both_miss_the_goal_the_nearer_one_ranks_first_then_the_more_accurate():
    goal = Goal(max_size_mb=1.0)
    far = goals.Figures(sqnr_db=90.0, size_mb=3.0, latency_ratio=0.1)
    near = goals.Figures(sqnr_db=20.0, size_mb=2.0, latency_ratio=0.9)
    assert goals.rank(near, goal) < goals.rank(far, goal)
    assert goals.rank(goals.Figures(sqnr_db=30.0, size_mb=2.0, latency_ratio=1.0), goal) < goals.rank(near, goal)


def test_beating_needs_one_better_figure_and_none_worse():
    faster = goals.Figures(drop=0.05, sqnr_db=30.0, size_mb=2.0, latency_ratio=0.4)
    assert faster.beats(FIGURES)
    assert not FIGURES.beats(faster)
    assert not FIGURES.beats(FIGURES)
    assert not goals.Figures(drop=0.06, sqnr_db=30.0, size_mb=2.0, latency_ratio=0.4).beats(FIGURES)
