"""Whatever was measured: no row beats the starred one, the nearest is starred if none meets the goal, advice agrees."""

from hypothesis import given, settings

from ace_studio.engine.advice import Facts, advise
from ace_studio.engine.advice.cards import _BOUNDS, _URGENT
from ace_studio.engine.pipeline.compress import choosing
from ace_studio.records.goals import GoalBound, goal_distance, misses, rank, run_figures
from ace_studio.records.results import Result, ResultStatus, RunStatus
from tests.engine.advice.finished_run import HERE, table
from tests.engine.pipeline.compress.any_result import BASELINE, jobs


def measured(runs):
    """The rows that can be starred, by their index."""
    return {
        at: run_figures(run, BASELINE)
        for at, run in enumerate(runs)
        if run.status is RunStatus.OK and run.verified and run.latency_ms
    }


def is_shown_better(one, other):
    """Whether a row is at least as good in every figure of the table and in a gain that is none by chance."""

    def shown(run, figures):
        ratio, noise = figures.latency_ratio, None if run.sqnr_db is None else -run.sqnr_db
        values = (ratio, run.size_bytes, run.metric_drop, figures.drop, noise)
        return [float("inf") if value is None else value for value in values]

    own, others = (shown(run, run_figures(run, BASELINE)) for run in (one, other))
    return own != others and all(a <= b for a, b in zip(own, others, strict=True))


@settings(max_examples=150)
@given(made=jobs())
def test_no_row_beats_the_starred_one_in_every_figure(made):
    job, runs = made
    chosen, _ = choosing._choose(job, runs)
    assert (chosen is None) == (not measured(runs))
    if chosen is not None:
        assert not [at for at in measured(runs) if is_shown_better(runs[at], runs[chosen])]


@settings(max_examples=150)
@given(made=jobs())
def test_a_row_that_meets_the_goal_is_starred_and_where_none_does_the_nearest(made):
    job, runs = made
    goal, found = job.recipe.goal, measured(runs)
    chosen, goal_met = choosing._choose(job, runs)
    can_meet = any(not misses(figures, goal) for figures in found.values())
    assert goal_met is (can_meet if goal.has_bound else None)
    if chosen is not None and not can_meet:
        assert goal_distance(found[chosen], goal) == min(goal_distance(figures, goal) for figures in found.values())
        assert rank(found[chosen], goal) == min(rank(figures, goal) for figures in found.values())


@settings(max_examples=100)
@given(made=jobs())
def test_advice_judges_the_starred_row_by_the_rule_that_starred_it(made):
    job, runs = made
    chosen, goal_met = choosing._choose(job, runs)
    result = Result(
        status=ResultStatus.OK, fingerprint="f", environment={}, baseline=BASELINE, runs=runs, chosen=chosen,
    )  # fmt: skip
    facts = Facts(result=result, recipe=job.recipe, table=table(), targets=HERE, cores=8)
    cards = advise(facts)
    if chosen is None:
        assert cards == ()
        return
    missed = misses(run_figures(runs[chosen], BASELINE), job.recipe.goal)
    assert facts.missed == {miss.bound for miss in missed}
    assert bool(facts.missed) == (goal_met is False)
    assert not (facts.has_slack and facts.missed & {GoalBound.DROP, GoalBound.SQNR})
    helpful = [
        bool(facts.missed & _BOUNDS.get(card.quantity, frozenset())) for card in cards if card.kind not in _URGENT
    ]
    assert helpful == sorted(helpful, reverse=True)
