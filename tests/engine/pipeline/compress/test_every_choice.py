"""Whatever was measured: no row beats the starred one, the nearest is starred if none meets the goal, advice agrees."""

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from ace_studio.engine.advice import Facts, advise
from ace_studio.engine.advice.cards import _BOUNDS, _URGENT
from ace_studio.engine.pipeline.compress import choosing
from ace_studio.engine.progress import Reporter
from ace_studio.records.goals import GoalBound, goal_distance, misses, rank, run_figures
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import Goal, Objective, Recipe
from ace_studio.records.results import Baseline, Latency, Result, ResultStatus, RunStatus, TargetRun
from tests.engine.advice.finished_run import HERE, table

BASELINE = Baseline(latency_ms=Latency(p10=9.0, p50=10.0, p90=11.0, n=10), metric=0.9, size_bytes=400)


@st.composite
def runs(draw: st.DrawFn) -> TargetRun:
    """A run of any target and precision; most are measured and verified."""
    speedup = draw(st.sampled_from([1.0, 1.01, 1.03, 2.0, 0.9, None]))
    over_float = draw(st.sampled_from([1.01, 0.8, 1.5, None]))
    spread = draw(st.sampled_from([0.0, 0.05]))
    drop = draw(st.sampled_from([0.0, -0.01, 0.01, 0.03, None]))
    ends = {
        f"{name}_{end}": None if value is None else value + (spread if end == "high" else -spread)
        for name, value in (("speedup", speedup), ("float_speedup", over_float), ("drop", drop))
        for end in ("low", "high")
    }
    p50 = draw(st.sampled_from([2.0, 4.0, 9.0, 11.0]))
    return TargetRun(
        target=draw(st.sampled_from(["openvino", "eager"])),
        precision=draw(st.sampled_from(["fp32", "int8-static"])),
        status=draw(st.sampled_from([RunStatus.OK] * 6 + [RunStatus.FAILED, RunStatus.DROPPED])),
        verified=draw(st.sampled_from([True] * 6 + [False])),
        latency_ms=draw(st.sampled_from([Latency(p10=p50, p50=p50, p90=p50, n=3)] * 6 + [None])),
        speedup=speedup,
        float_speedup=over_float,
        speed_undecided=draw(st.sampled_from([""] * 6 + ["it slowed down"])),
        metric_drop=drop,
        sqnr_db=draw(st.sampled_from([30.0, 10.0, 120.0, None])),
        size_bytes=draw(st.sampled_from([100_000, 150_000, 400_000, None])),
        **ends,
    )


goals = st.builds(
    Goal,
    max_drop=st.sampled_from([0.01, None, 0.0]),
    min_sqnr_db=st.sampled_from([None, None, 20.0, 90.0]),
    max_size_mb=st.sampled_from([None, None, 0.05, 0.15]),
    max_latency_ratio=st.sampled_from([None, None, 0.05, 0.5, 1.0]),
    optimize=st.sampled_from([Objective.LATENCY] * 3 + [Objective.SIZE, Objective.ACCURACY]),
)


@st.composite
def jobs(draw: st.DrawFn) -> tuple[SimpleNamespace, tuple[TargetRun, ...]]:
    """What is left of a job when it chooses, and its runs."""
    plan = Plan(from_goal=draw(st.sampled_from([True, True, True, False])))
    job = SimpleNamespace(
        state=SimpleNamespace(baseline=BASELINE),
        recipe=Recipe(goal=draw(goals), plan=plan),
        reporter=Reporter(),
        loaded=SimpleNamespace(frontend="torch"),
    )
    return job, tuple(draw(st.lists(runs(), min_size=1, max_size=8)))


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
