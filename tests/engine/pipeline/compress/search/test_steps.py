"""The steps of a search on disk, and what they say of a candidate."""

from __future__ import annotations

from types import SimpleNamespace

from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.search import steps
from ace_studio.engine.pipeline.compress.search.steps import StepStore, with_findings
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import Goal
from ace_studio.records.results import Baseline, RunStatus, SearchStep, TargetRun, Warning


def test_another_job_does_not_take_the_steps_of_this_one(tmp_path):
    step = SearchStep(target="openvino", low="int8-static", meets=True, sqnr_db=30.0)
    StepStore(tmp_path, "one job").keep("a plan", step)
    kept = StepStore(tmp_path, "one job").find("a plan")
    assert kept is not None
    assert kept.reused
    assert StepStore(tmp_path, "another job").find("a plan") is None


def test_a_step_that_could_not_be_built_is_tried_again(tmp_path):
    store = StepStore(tmp_path, "job")
    store.keep("built", SearchStep(target="openvino", low="int8-static", sqnr_db=40.0))
    store.keep("failed", SearchStep(target="openvino", low="int8-static", misses=("could not be built: no memory",)))
    again = StepStore(tmp_path, "job")
    assert again.find("built").reused
    assert again.find("failed") is None


def test_steps_that_other_versions_found_are_not_believed(tmp_path, monkeypatch):
    step = SearchStep(target="eager", low="bf16", sqnr_db=40.0)
    StepStore(tmp_path, "job").keep("a plan", step)
    assert StepStore(tmp_path, "job").find("a plan") is not None
    monkeypatch.setattr(steps, "package_versions", lambda: {"ace-studio": "99.0"})
    assert StepStore(tmp_path, "job").find("a plan") is None


def _findings(goal: Goal, **run: object) -> SearchStep:
    candidate = Candidate(SimpleNamespace(name="t"), None, TargetRun(target="t", **run))
    return with_findings(SearchStep(target="t", low="int8-static"), candidate, Baseline(), goal)


def test_a_step_has_the_figures_of_its_candidate_and_says_what_it_misses():
    step = _findings(Goal(min_sqnr_db=20, max_latency_ratio=0.7), status=RunStatus.OK, sqnr_db=10.0, speedup=1.45)
    assert step.latency_ratio == 0.6897
    assert step.misses == ("the fidelity is 10.0 dB; at least 20.0 dB is required",)
    assert not step.meets


def test_a_step_that_meets_the_goal_misses_nothing():
    step = _findings(Goal(max_latency_ratio=0.7), status=RunStatus.OK, speedup=1.45)
    assert step.meets
    assert step.misses == ()


def test_a_candidate_that_failed_or_lost_a_race_meets_no_goal_and_says_why():
    problem = Problem(code=ErrorCode.OUT_OF_MEMORY, what="no memory")
    failed = _findings(Goal(), status=RunStatus.FAILED, error=problem)
    beaten = _findings(Goal(), status=RunStatus.DROPPED, warnings=(Warning(code="dropped", what="2 times slower"),))
    assert (failed.meets, failed.misses) == (False, ("could not be built: no memory",))
    assert (beaten.meets, beaten.misses, beaten.status) == (False, ("2 times slower",), RunStatus.DROPPED)
