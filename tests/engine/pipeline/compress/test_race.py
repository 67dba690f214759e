"""In a search for the fastest plan, who has clearly lost to one that meets the goal is dropped, and nobody else."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
import torch

from ace_studio.engine.flow import BoundPlan, Example
from ace_studio.engine.pipeline.compress import race
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import JobState
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import Goal, Objective, Recipe, TargetsChoice
from ace_studio.records.results import RunStatus, TargetRun

SEARCH = Recipe(goal=Goal(min_sqnr_db=20.0))


def candidate(name: str, seconds: float, *, sqnr_db: float = 30.0) -> Candidate:
    def run(_: torch.Tensor) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            pass

    plan = BoundPlan(Plan())
    made = Candidate(SimpleNamespace(name=name), plan, TargetRun(target=name, status=RunStatus.OK, sqnr_db=sqnr_db))
    made.lowered = run
    return made


def job(recipe: Recipe = SEARCH) -> SimpleNamespace:
    captured = SimpleNamespace(examples=[Example((torch.zeros(1),))], device=torch.device("cpu"))
    return SimpleNamespace(recipe=recipe, captured=captured, state=JobState(), reporter=Reporter(), builders=None)


def run_race(shared: SimpleNamespace, *entering: Candidate) -> None:
    for one in entering:
        race.drop_if_lost(shared, one)
        race.enter(shared, one)


def test_a_candidate_that_is_clearly_slower_than_the_leader_is_dropped_and_says_to_whom() -> None:
    fast, slow = candidate("fast", 0.001), candidate("slow", 0.004)
    run_race(job(), fast, slow)
    assert fast.run.status is RunStatus.OK
    assert slow.run.status is RunStatus.DROPPED
    assert slow.lowered is None
    assert slow.run.latency_ms is not None
    assert "slower than fast" in slow.run.warnings[0].what


def test_one_that_is_as_fast_stays() -> None:
    first, second = candidate("first", 0.002), candidate("second", 0.002)
    run_race(job(), first, second)
    assert second.run.status is RunStatus.OK
    assert second.lowered is not None


def test_a_fast_candidate_that_misses_the_goal_drops_nobody() -> None:
    wrong, slow = candidate("wrong", 0.001, sqnr_db=3.0), candidate("slow", 0.004)
    run_race(job(), wrong, slow)
    assert slow.run.status is RunStatus.OK


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(goal=Goal(min_sqnr_db=20.0, optimize=Objective.ACCURACY)),
        Recipe(goal=Goal(min_sqnr_db=20.0, max_size_mb=1.0)),
        Recipe(goal=Goal(min_sqnr_db=20.0), targets=TargetsChoice(names=("openvino",))),
        Recipe(goal=Goal(min_sqnr_db=20.0), plan=Plan()),
    ],
    ids=["accuracy counts", "size counts", "targets were named", "the plan was given"],
)
def test_nobody_is_dropped_where_more_than_speed_decides(recipe: Recipe) -> None:
    fast, slow = candidate("fast", 0.001), candidate("slow", 0.004)
    run_race(job(recipe), fast, slow)
    assert slow.run.status is RunStatus.OK
