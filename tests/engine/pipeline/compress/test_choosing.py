"""What a job says where nothing worked, or nothing meets the goal."""

from types import SimpleNamespace

import msgspec

from ace_studio.engine.pipeline.compress import choosing
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import Goal, Objective, Recipe
from ace_studio.records.results import Baseline, Latency, Region, RegionChoice, RunStatus, SearchStep, TargetRun


def candidate(target, code=None, *, status=RunStatus.OK, why="", **run):
    error = Problem(code=code, what=f"{target} failed", why=why) if code else None
    return Candidate(
        SimpleNamespace(name=target),
        None,
        TargetRun(target=target, precision="fp32", status=status, error=error, **run),
    )


def test_a_reason_that_several_candidates_share_is_said_once_and_so_is_their_code():
    refused = [
        candidate(name, ErrorCode.NOT_INSTALLED, status=RunStatus.UNAVAILABLE, why="no wheel") for name in ("a", "b")
    ]
    problem = choosing._nothing_worked(refused)
    assert problem.why == "a fp32, b fp32: no wheel"
    assert problem.code is ErrorCode.NOT_INSTALLED


def test_different_failures_are_listed_and_the_code_is_the_general_one():
    problem = choosing._nothing_worked(
        [
            candidate("a", ErrorCode.OUT_OF_MEMORY, status=RunStatus.FAILED, why="big"),
            candidate("b", ErrorCode.NOT_INSTALLED, status=RunStatus.UNAVAILABLE, why="no wheel"),
        ]
    )
    assert problem.why == "a fp32: a failed; b fp32: no wheel"
    assert problem.code is ErrorCode.UNSUPPORTED


def test_without_a_candidate_the_problem_says_that_no_target_is_there():
    assert choosing._nothing_worked([]).why == "no target is available here"


def test_a_model_that_is_only_too_large_is_not_told_to_keep_more_at_fp32():
    state = SimpleNamespace(baseline=Baseline(), search=[], search_notes={})
    for goal, told in ((Goal(max_size_mb=0.001), "prune"), (Goal(max_size_mb=0.001, min_sqnr_db=40.0), "fp32")):
        job = SimpleNamespace(state=state, recipe=Recipe(goal=goal))
        remedy = choosing._goal_not_met(job, candidate("eager", sqnr_db=30.0, size_bytes=2000)).remedy
        assert [word for word in ("prune", "fp32") if word in remedy] == [told]


def test_a_missed_goal_names_the_best_its_misses_and_what_the_search_tried():
    step = SearchStep(target="openvino", low="int8-static")
    state = SimpleNamespace(
        baseline=Baseline(), search=[step, step], search_notes={"too large": ["openvino int8", "eager bf16"]}
    )
    job = SimpleNamespace(state=state, recipe=Recipe(goal=Goal(min_sqnr_db=40.0)))
    problem = choosing._goal_not_met(job, candidate("eager", sqnr_db=30.0))
    assert problem.code is ErrorCode.GOAL_NOT_MET
    assert problem.why == (
        "the best found is eager fp32: the fidelity is 30.0 dB; at least 40.0 dB is required; "
        "2 plans were evaluated on openvino; openvino int8, eager bf16: too large"
    )


def slow_job(goal):
    def run(precision, speedup, over_float=None, *, sqnr_db=40.0):
        return TargetRun(
            target="openvino", status=RunStatus.OK, precision=precision, verified=True, size_bytes=1, sqnr_db=sqnr_db,
            latency_ms=Latency(p10=1.0, p50=1.0, p90=1.0, n=1), speedup=speedup, speedup_high=speedup,
            float_speedup=over_float, float_speedup_high=over_float,
        )  # fmt: skip

    runs = (run("int8-static", 0.9, 0.75), run("fp32", 1.2, sqnr_db=120.0))
    job = SimpleNamespace(
        state=SimpleNamespace(baseline=Baseline()), recipe=Recipe(goal=goal), reporter=Reporter(),
        loaded=SimpleNamespace(frontend="torch"),
    )  # fmt: skip
    return job, runs


def test_where_speed_is_wanted_the_result_says_once_why_float_was_chosen():
    job, runs = slow_job(Goal(min_sqnr_db=30.0))
    assert choosing._choose(job, (runs[0],))[0] == 0
    assert [one.code for one in job.reporter.warnings] == ["slower"]
    job, runs = slow_job(Goal(min_sqnr_db=30.0))
    runs = (msgspec.structs.replace(runs[0], speedup=1.21, speedup_high=1.21, float_speedup_low=0.7), runs[1])
    assert choosing._choose(job, runs) == (1, True)
    (warning,) = job.reporter.warnings
    assert (warning.code, warning.where) == ("not-faster", "openvino")
    assert warning.what.startswith("openvino fp32 was chosen: openvino int8-static is not clearly faster than")


def test_where_it_is_not_decided_what_is_faster_the_choice_stands_and_nothing_is_called_slower():
    job, runs = slow_job(Goal(min_sqnr_db=30.0))
    runs = tuple(msgspec.structs.replace(run, speed_undecided="it slowed down") for run in runs)
    faster = msgspec.structs.replace(runs[0], speedup=1.3)
    assert choosing._choose(job, (faster, runs[1]))[0] == 0
    assert choosing._choose(job, runs[:1])[0] == 0
    assert job.reporter.warnings == []


def test_where_size_is_wanted_a_slower_run_is_chosen_and_the_result_says_that_it_is_slower():
    job, runs = slow_job(Goal(min_sqnr_db=30.0, optimize=Objective.SIZE))
    runs = (runs[0], msgspec.structs.replace(runs[1], size_bytes=4))
    assert choosing._choose(job, runs) == (0, True)
    (warning,) = job.reporter.warnings
    assert warning.code == "slower"
    assert "slower than the original (0.90x) and fp32 there (0.75x)" in warning.what


def test_a_ruined_run_is_told_where_no_metric_and_no_goal_judges_it():
    job, runs = slow_job(Goal())
    close, ruined = (msgspec.structs.replace(runs[1], sqnr_db=db) for db in (6.5, -6.02))
    choosing._choose(job, (close,))
    choosing._choose(job, (msgspec.structs.replace(ruined, metric=0.9),))
    assert job.reporter.warnings == []
    choosing._choose(job, (ruined,))
    (warning,) = job.reporter.warnings
    assert (warning.code, warning.where) == ("far-from-original", "openvino")
    assert "-6.0 dB, so the error is 200% of them" in warning.what
    job, _ = slow_job(Goal(min_sqnr_db=-10.0))
    choosing._choose(job, (ruined,))
    assert job.reporter.warnings == []


def test_that_float_is_faster_there_is_said_once_of_a_plan_of_the_users():
    job, runs = slow_job(Goal())
    job.recipe = Recipe(plan=Plan(default=Precision.INT8_STATIC))
    for run, said in (
        (runs[0], ["slower than the original (0.90x)"]),
        (msgspec.structs.replace(runs[0], speedup=1.2, speedup_high=1.2), []),
        (msgspec.structs.replace(runs[0], float_speedup=0.9), []),
    ):  # fp32 there is the original
        job.reporter = Reporter()
        choosing._choose(job, (run,))
        assert [one.what.partition("it is ")[2] for one in job.reporter.warnings] == said
        assert choosing._float_words(job, run)


def told_of(runs, *, assigned, regions=(), plan=None):
    """What is said of candidates of one target that was searched, or given a plan."""
    found = [
        Candidate(SimpleNamespace(label="OpenVINO"), SimpleNamespace(assigned=its), run)
        for run, its in zip(runs, assigned, strict=True)
    ]
    job = SimpleNamespace(
        state=SimpleNamespace(candidates=found, regions={"openvino": regions}),
        recipe=Recipe(plan=plan or Plan(from_goal=True)), reporter=Reporter(),
    )  # fmt: skip
    choosing._say_what_does_not_pay(job, 0)
    return [(one.code, one.where, one.what) for one in job.reporter.warnings]


def test_the_result_counts_the_regions_where_a_low_precision_does_not_pay():
    low, exact = Precision.INT8_STATIC, Precision.FP32
    choices = tuple(RegionChoice(precision=str(one), latency_share=0.1) for one in (low, exact))
    regions = [
        Region(target="openvino", ops=ops, choices=choices, pays=ops == ("d",)) for ops in (("a", "b"), ("c",), ("d",))
    ]
    runs = slow_job(Goal())[1][:1]
    mixed = told_of(runs, assigned=[{"a": exact, "b": exact, "c": exact, "d": low}], regions=regions)
    words = "OpenVINO: int8-static does not pay here: 2 of 3 regions"
    assert mixed == [("does-not-pay", "openvino", f"{words}, kept at fp32")]
    why = "stay at int8-static, as fp32 there saves no time of the model that can be measured"
    for assigned, stay in (
        ({"a": exact, "c": low}, "1 kept at fp32, the other 1"),
        ({"a": low, "c": low}, "they"),
    ):
        ((_, _, said),) = told_of(runs, assigned=[assigned], regions=regions)
        assert said == f"{words}; {stay} {why}"
    assert told_of(runs, assigned=[{}], regions=regions[2:]) == []


def test_a_plan_of_the_users_that_is_no_faster_than_the_same_runtime_in_float_is_told():
    given = Plan(default=Precision.INT8_STATIC)
    (run,) = slow_job(Goal())[1][:1]
    ((code, where, said),) = told_of([run, run], assigned=[{}, {}], plan=given)
    assert (code, where) == ("does-not-pay", "openvino")
    assert said == "OpenVINO: int8-static does not pay here: fp32 there is faster, 0.75x"
    unclear = msgspec.structs.replace(run, float_speedup=1.76, float_speedup_low=0.94, float_speedup_high=2.98)
    ((_, _, said),) = told_of([unclear], assigned=[{}], plan=given)
    words = "it is not clearly faster than fp32 there, no difference seen (0.94 - 2.98)"
    assert said == f"OpenVINO: int8-static may not pay here: {words}"
    faster = msgspec.structs.replace(run, float_speedup=1.3, float_speedup_low=1.2)
    undecided = msgspec.structs.replace(run, speed_undecided="hot")
    assert told_of([faster, undecided], assigned=[{}, {}], plan=given) == []
    assert told_of([run], assigned=[{}]) == []
