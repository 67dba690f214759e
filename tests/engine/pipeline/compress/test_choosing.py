"""What a job says where nothing worked, or nothing meets the goal."""

from __future__ import annotations

from types import SimpleNamespace

from ace_studio.engine.pipeline.compress import choosing
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import Goal, Recipe
from ace_studio.records.results import Baseline, RunStatus, SearchStep, TargetRun


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
