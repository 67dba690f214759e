"""Problems and the exit codes that scripts rely on."""

from __future__ import annotations

import pytest

from ace_studio.records.errors import AceError, ErrorCode, ExitCode, Problem


def test_a_problem_reads_as_what_why_remedy_where():
    problem = Problem(code=ErrorCode.BAD_FILE, what="It is bad", why="because", remedy="fix it", where="a.py:3")
    assert problem.as_text() == "It is bad\n  why: because\n  remedy: fix it\n  where: a.py:3"


def test_empty_parts_and_details_stay_out_of_the_text():
    assert Problem(code=ErrorCode.USAGE, what="Only this", details="Traceback ...").as_text() == "Only this"


def test_every_code_has_an_exit_code_and_none_says_done():
    for code in ErrorCode:
        assert Problem(code=code, what="x").exit_code in set(ExitCode) - {ExitCode.DONE}


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        (ErrorCode.RECIPE, 2),
        (ErrorCode.NOT_CAPTURED, 3),
        (ErrorCode.GOAL_NOT_MET, 4),
        (ErrorCode.UNTRUSTED, 5),
        (ErrorCode.CRASH, 6),
        (ErrorCode.CANCELLED, 130),
    ],
)
def test_the_exit_codes_of_the_contract(code, exit_code):
    assert Problem(code=code, what="x").exit_code == exit_code


def test_an_error_carries_all_its_problems_and_speaks_with_the_first():
    first, second = (Problem(code=ErrorCode.RECIPE, what=what) for what in ("one", "two"))
    error = AceError(first, second)
    assert (error.problem, error.problems, str(error)) == (first, (first, second), "one")


def test_an_error_without_a_problem_cannot_be_made():
    with pytest.raises(ValueError, match="at least one"):
        AceError()
