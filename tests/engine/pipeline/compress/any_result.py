"""Hypothesis strategies for the runs of a job, with few different figures so that they often tie."""

from types import SimpleNamespace

from hypothesis import strategies as st

from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import Goal, Objective, Recipe
from ace_studio.records.results import Baseline, Latency, RunStatus, TargetRun

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
