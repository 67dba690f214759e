"""The evaluation of plans in a search: built once, known again later, and dropped if another is better."""

from types import SimpleNamespace

import msgspec
import pytest

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.measure import Samples
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import JobState
from ace_studio.engine.pipeline.compress.search import evaluation
from ace_studio.engine.pipeline.compress.search.evaluation import PlanEvaluator
from ace_studio.engine.pipeline.compress.search.variants import SearchVariant
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes import recipe as recipes
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.results import RunStatus, SearchStep, TargetRun

TARGET = SimpleNamespace(name="t", available=lambda: SimpleNamespace(version="1"))
RULES = (PlanRule(match="id:a", precision=Precision.FP32), PlanRule(match="id:b", precision=Precision.BF16))
MIXED = SearchStep(target="", low="", high="fp32, bf16", kept_high=2, of=3, rules=RULES, predicted_db=40.0)
REASONS = {"a": "it is sensitive"}


def variant(low=Precision.INT8_STATIC):
    return SearchVariant(TARGET, Plan(default=low))


@pytest.fixture
def job(tmp_path):
    return SimpleNamespace(
        output=tmp_path, recipe=recipes.Recipe(goal=recipes.Goal(min_sqnr_db=20.0)), threads=1, calibration=list,
        captured=SimpleNamespace(fingerprint="f", examples=[], device="cpu"),
        loaded=SimpleNamespace(data=SimpleNamespace(calibration=None)),
        state=JobState(), guarded=lambda candidate, step: None, folder_of=lambda candidate: tmp_path / "artifact",
        told=[], tell=lambda candidate: None,
    )  # fmt: skip


@pytest.fixture
def built(monkeypatch):
    """The plans that were built, in order; every candidate has 30 dB."""
    plans = []

    def try_plan(job, target, plan, *, methods, weights_for, options):
        plans.append(plan)
        status = RunStatus.UNAVAILABLE if plan.default is Precision.FP8 else RunStatus.OK
        made = Candidate(target, BoundPlan(plan), TargetRun(target="t", status=status, sqnr_db=30.0), methods=methods)
        made.options, made.weights_for = options, weights_for
        made.lowered = object()
        job.state.candidates.append(made)
        return made

    monkeypatch.setattr(evaluation, "try_plan", try_plan)
    return plans


def test_a_plan_is_built_once_and_its_step_names_its_run(job, built):
    evaluator = PlanEvaluator(job)
    step = evaluator.variant(variant())
    assert evaluator.variant(variant()) is step
    assert len(built) == 1
    assert (step.run, step.meets, step.sqnr_db) == (0, True, 30.0)
    assert job.state.search == [step]


def test_a_mixture_is_the_variant_with_rules_and_a_reason_per_op(job, built):
    step = PlanEvaluator(job).mixture(variant(), MIXED, REASONS)
    assert built == [Plan(default=Precision.INT8_STATIC, rules=RULES)]
    assert (step.target, step.low, step.kept_high, step.of, step.high) == ("t", "int8-static", 2, 3, "fp32, bf16")
    assert (step.predicted_db, step.sqnr_db) == (40.0, 30.0)
    assert job.state.candidates[0].kept == REASONS


def test_all_ops_at_one_precision_are_known_by_it(job, built):
    evaluator = PlanEvaluator(job)
    step = evaluator.uniform(TARGET, Precision.FP32)
    assert built == [Plan(default=Precision.FP32)]
    assert evaluator.known_uniform(TARGET, Precision.FP32) is step
    assert evaluator.known_uniform(TARGET, Precision.BF16) is None


def test_what_a_target_cannot_run_is_no_step(job, built):
    assert PlanEvaluator(job).uniform(TARGET, Precision.FP8) is None
    assert job.state.search == []


def test_a_later_search_of_the_job_knows_the_steps_and_builds_only_what_is_kept(job, built):
    PlanEvaluator(job).mixture(variant(), MIXED, REASONS)
    built.clear()
    job.state = JobState()
    evaluator = PlanEvaluator(job)
    assert not evaluator.is_known(variant())
    step = evaluator.mixture(variant(), MIXED, REASONS)
    assert step.reused
    assert built == []
    evaluator.keep_only(TARGET, evaluator.plans)
    assert len(built) == 1
    assert job.state.search[0].run == 0
    assert job.state.candidates[0].kept == REASONS


@pytest.mark.parametrize(("needed_db", "meets"), [(25.0, True), (35.0, False)])
def test_a_search_with_another_goal_takes_the_figures_and_judges_them_by_its_own(job, built, needed_db, meets):
    PlanEvaluator(job).mixture(variant(), MIXED, REASONS)
    built.clear()
    job.state = JobState()
    job.recipe = recipes.Recipe(
        goal=recipes.Goal(min_sqnr_db=needed_db, max_size_mb=None), sensitivity=recipes.SensitivityChoice(samples=9)
    )
    step = PlanEvaluator(job).mixture(variant(), msgspec.structs.replace(MIXED, predicted_db=44.0), REASONS)
    assert built == []
    assert (step.reused, step.meets, bool(step.misses), step.predicted_db) == (True, meets, not meets, 44.0)


@pytest.mark.parametrize(
    "changed",
    [
        {"calibration": recipes.CalibrationChoice(observer=recipes.Observer.MSE)},
        {"improve": recipes.ImproveChoice(max_seconds=5.0)},
        {"measure": recipes.MeasureChoice(threads=2)},
        {"targets": recipes.TargetsChoice(names=("openvino",))},
        {"evaluate": recipes.EvaluateChoice(function="other")},
    ],
)
def test_what_was_found_with_other_data_or_measured_otherwise_is_not_taken(job, built, changed):
    PlanEvaluator(job).variant(variant())
    job.state, job.recipe = JobState(), msgspec.structs.replace(job.recipe, **changed)
    assert not PlanEvaluator(job).variant(variant()).reused


def test_what_is_not_kept_is_dropped_with_the_better_plan_as_the_reason(job, built):
    evaluator = PlanEvaluator(job)
    evaluator.mixture(variant(), MIXED, REASONS)
    evaluator.variant(variant(Precision.INT8_DYNAMIC))
    evaluator.keep_only(TARGET, evaluator.plans[:1])
    kept, dropped = job.state.candidates
    assert (kept.run.status, dropped.run.status) == (RunStatus.OK, RunStatus.DROPPED)
    assert dropped.lowered is None
    (warning,) = dropped.run.warnings
    assert (warning.code, warning.what) == (
        "dropped",
        "the search found a better plan: t int8-static with 2 ops at fp32, bf16",
    )


def test_the_candidate_of_the_recipes_own_plan_is_used_and_never_dropped(job, built):
    own = Candidate(TARGET, BoundPlan(Plan(default=Precision.INT8_STATIC)), TargetRun(target="t", status=RunStatus.OK))
    own.lowered = object()
    job.state.candidates.append(own)
    evaluator = PlanEvaluator(job)
    evaluator.variant(variant())
    assert built == []
    evaluator.variant(variant(Precision.BF16))
    evaluator.keep_only(TARGET, evaluator.plans[1:])
    assert own.lowered is not None


@pytest.mark.parametrize(("speedup", "kept"), [(1.2, True), (1.01, False)])
def test_a_plan_built_otherwise_stays_only_if_it_is_faster_beside_the_usual_build(
    job, built, monkeypatch, speedup, kept
):
    usual, faster = (Samples(wall_ms=[ms] * 8, cpu_ms=[ms] * 8) for ms in (speedup, 1.0))
    monkeypatch.setattr(evaluation, "time_beside", lambda *given, **named: (usual, faster))
    evaluator = PlanEvaluator(job)
    evaluator.mixture(variant(), MIXED, REASONS)
    (plain,) = evaluator.plans
    found = evaluator.otherwise(plain, {"groups": "64"})
    assert built == [plain.plan, plain.plan]
    assert (found.step.meets, found.step.options, found.step.kept_high) == (kept, {"groups": "64"}, 2)
    assert found.candidate.run.status is (RunStatus.OK if kept else RunStatus.DROPPED)
    assert job.state.search == [plain.step, found.step]
    if not kept:
        assert found.step.misses == ("groups 64 is not clearly faster than without it: 1.01x",)
    job.state = JobState()
    again = PlanEvaluator(job)
    again.mixture(variant(), MIXED, REASONS)
    assert again.otherwise(again.plans[0], {"groups": "64"}).step.meets is kept
    assert len(built) == 2


def test_a_quick_speed_up_is_the_ratio_of_the_two_medians(job, monkeypatch):
    base, own = (Samples(wall_ms=[ms, ms, 9.0], cpu_ms=[ms] * 3) for ms in (3.0, 2.0))
    monkeypatch.setattr(evaluation, "time_beside", lambda *given, **named: (base, own))
    job.reference, job.reporter = None, Reporter()
    made = Candidate(TARGET, BoundPlan(Plan()), TargetRun(target="t", status=RunStatus.OK))
    evaluation._time_quickly(job, made)
    assert (made.run.speedup, made.run.latency_ms.p50) == (1.5, 2.0)
