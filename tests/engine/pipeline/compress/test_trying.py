"""A pruned or trained model is compared with the original, and its lowering with what was lowered."""

import copy
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from ace_studio.engine.flow import BoundPlan, Example, LoadedModel
from ace_studio.engine.measure import measure_interleaved
from ace_studio.engine.pipeline.compress import trying
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import JobState
from ace_studio.engine.pipeline.compress.trying import check, try_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import TargetAtWork
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import Goal, Objective, Recipe, TargetsChoice
from ace_studio.records.results import RunStatus, TargetRun
from tests import tiny_models
from tests.engine.captured import job_of


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    tiny = tiny_models.mlp()
    changed = copy.deepcopy(tiny.module)
    with torch.no_grad():
        changed[0].weight[:16] = 0.0
        loaded = LoadedModel(module=changed, source=tmp_path_factory.mktemp("m"), sha256="", original=tiny.module)
        return job_of(loaded, *tiny.examples, output=tmp_path_factory.mktemp("out"))


def candidate_that_computes(call):
    run = TargetRun(target="eager", status=RunStatus.OK, precision="fp32")
    plan = BoundPlan(Plan())
    return Candidate(TARGETS["eager"], plan, run, lowered=call)


def test_a_right_lowering_of_a_changed_model_tells_how_far_it_is_from_the_original(job):
    candidate = candidate_that_computes(job.captured.module)
    with torch.no_grad():
        check(job, candidate)
    assert 0 < candidate.run.sqnr_db < 30  # half of a layer is gone, and that is told, not refused


def test_a_candidate_is_judged_by_the_users_examples_and_not_by_sizes_that_were_made_up(job):
    given = {tuple(one.tensors()[0].shape) for one in job.captured.given_examples}
    assert job.captured.unseen
    candidate = candidate_that_computes(lambda x: job.reference(x) + (0.0 if tuple(x.shape) in given else 100.0))
    with torch.no_grad():
        check(job, candidate)
    assert candidate.run.sqnr_db == candidate.run.fidelity_db == 200.0


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


def race_job(recipe: Recipe = SEARCH) -> SimpleNamespace:
    captured = SimpleNamespace(examples=[Example((torch.zeros(1),))], device=torch.device("cpu"))
    timed = partial(measure_interleaved, reporter=Reporter())
    return SimpleNamespace(
        recipe=recipe, captured=captured, state=JobState(), reporter=Reporter(), alone=nullcontext, timed=timed
    )


def run_race(shared: SimpleNamespace, *entering: Candidate) -> None:
    for one in entering:
        trying.drop_if_lost(shared, one)
        trying.enter(shared, one)


def test_a_candidate_that_is_clearly_slower_than_the_leader_is_dropped_and_says_to_whom() -> None:
    fast, slow = candidate("fast", 0.001), candidate("slow", 0.004)
    run_race(race_job(), fast, slow)
    assert fast.run.status is RunStatus.OK
    assert slow.run.status is RunStatus.DROPPED
    assert slow.lowered is None
    assert slow.run.latency_ms is not None
    assert "slower than fast" in slow.run.warnings[0].what


def test_one_that_is_as_fast_stays() -> None:
    first, second = candidate("first", 0.002), candidate("second", 0.002)
    run_race(race_job(), first, second)
    assert second.run.status is RunStatus.OK
    assert second.lowered is not None


def test_a_fast_candidate_that_misses_the_goal_drops_nobody() -> None:
    wrong, slow = candidate("wrong", 0.001, sqnr_db=3.0), candidate("slow", 0.004)
    run_race(race_job(), wrong, slow)
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
    run_race(race_job(recipe), fast, slow)
    assert slow.run.status is RunStatus.OK


def test_a_candidate_is_told_before_it_is_built_and_with_each_figure(job, monkeypatch):
    told = []
    monkeypatch.setattr(type(job), "tell", lambda _, candidate: told.append(candidate.run))
    monkeypatch.setattr(trying, "prove", lambda *_: None)
    monkeypatch.setattr(TARGETS["eager"], "lower", lambda _: job.captured.module)
    with torch.no_grad():
        try_plan(job, TARGETS["eager"], Plan())
    assert [run.build_seconds is None for run in told[:2]] == [True, False]
    assert told[-1].sqnr_db is not None


def test_a_target_that_crashed_an_earlier_process_is_not_built_again(job):
    crash = Problem(code=ErrorCode.CRASH, what="it crashed")
    told = []
    state = JobState(lost={"onnxruntime": crash})
    again = replace(job, state=state, reporter=Reporter(told.append, job="again"))
    with torch.no_grad():
        tried = [try_plan(again, TARGETS[name], Plan()) for name in ("onnxruntime", "eager")]
    assert [one.run.status for one in tried] == [RunStatus.FAILED, RunStatus.OK]
    assert tried[0].run.error == crash
    at_work = [(event.target, event.index) for event in told if isinstance(event, TargetAtWork)]
    assert set(at_work) == {("eager", 1), ("", None)} and at_work[0] == ("eager", 1) and at_work[-1] == ("", None)
