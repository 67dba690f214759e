"""The steps of searches on disk: found again by every job whose figures would be the same, judged by its own goal."""

import os
from types import SimpleNamespace

from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.search import steps
from ace_studio.engine.pipeline.compress.search.steps import BuildTimes, StepStore, evaluation_key, with_findings
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import Goal, MeasureChoice, Recipe
from ace_studio.records.results import Baseline, RunStatus, SearchStep, TargetRun, Warning


def store_in(folder, job="job", goal=None):
    return StepStore(folder, job, goal=goal or Goal())


def test_another_job_does_not_take_the_steps_of_this_one(tmp_path):
    step = SearchStep(target="openvino", low="int8-static", meets=True, sqnr_db=30.0)
    store_in(tmp_path, "one job").keep("a plan", step)
    kept = store_in(tmp_path, "one job").find("a plan")
    assert kept is not None
    assert kept.reused
    assert store_in(tmp_path, "another job").find("a plan") is None


def test_a_step_that_could_not_be_built_is_tried_again(tmp_path):
    store = store_in(tmp_path, "job")
    store.keep("built", SearchStep(target="openvino", low="int8-static", sqnr_db=40.0))
    store.keep("failed", SearchStep(target="openvino", low="int8-static", misses=("could not be built: no memory",)))
    again = store_in(tmp_path, "job")
    assert again.find("built").reused
    assert again.find("failed") is None


def test_steps_that_other_versions_found_are_not_believed(tmp_path, monkeypatch):
    step = SearchStep(target="eager", low="bf16", sqnr_db=40.0)
    store_in(tmp_path, "job").keep("a plan", step)
    assert store_in(tmp_path, "job").find("a plan") is not None
    monkeypatch.setattr(steps, "package_versions", lambda: {"ace-studio": "99.0"})
    assert store_in(tmp_path, "job").find("a plan") is None


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


def test_what_lost_a_race_is_known_to_the_same_goal_only(tmp_path):
    goal = Goal(min_sqnr_db=20.0)
    beaten = SearchStep(target="eager", low="bf16", sqnr_db=40.0, status=RunStatus.DROPPED, misses=("2 times slower",))
    store_in(tmp_path, goal=goal).keep("a plan", beaten)
    assert store_in(tmp_path, goal=goal).find("a plan").misses == ("2 times slower",)
    assert store_in(tmp_path, goal=Goal(min_sqnr_db=10.0)).find("a plan") is None


def test_steps_are_kept_in_the_cache_too_for_jobs_with_other_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(tmp_path / "cache"))
    first = store_in(tmp_path / "first")
    first.keep("a plan", SearchStep(target="eager", low="bf16", sqnr_db=40.0))
    first.keep_times("a plan", BuildTimes(baseline_ms=2.0))
    other = store_in(tmp_path / "other", goal=Goal(min_sqnr_db=50.0))
    assert not other.find("a plan").meets
    assert other.times("a plan").baseline_ms == 2.0
    assert store_in(tmp_path / "other", "another job").find("a plan") is None


def test_few_searches_stay_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(tmp_path))
    monkeypatch.setattr(steps, "MOST_KEPT", 2)
    for at in range(4):
        store_in(tmp_path / "out", f"job{at}").keep("a plan", SearchStep(target="eager", low="bf16"))
        os.utime(tmp_path / f"job{at}.search.json", (at, at))
    assert {path.name for path in tmp_path.glob("*.search.json")} == {"job2.search.json", "job3.search.json"}


def key_of(recipe, *, threads):
    captured = SimpleNamespace(fingerprint="f", examples=[], device="cpu")
    loaded = SimpleNamespace(data=SimpleNamespace(calibration=None))
    job = SimpleNamespace(recipe=recipe, captured=captured, loaded=loaded, threads=threads)
    job.state = SimpleNamespace(baseline=Baseline())
    return evaluation_key(job)


def test_figures_are_known_to_jobs_with_as_many_threads_whatever_their_goal():
    fastest = MeasureChoice(threads="best")
    key = key_of(Recipe(measure=fastest), threads=4)
    assert key_of(Recipe(measure=fastest, goal=Goal(min_sqnr_db=20.0)), threads=4) == key
    assert key_of(Recipe(measure=fastest), threads=2) != key
