"""Problems and the exit codes that scripts rely on."""

import pytest

from ace_studio.records.errors import DETAILS_LIMIT, TEXT_LIMIT, AceError, ErrorCode, ExitCode, Problem, message_of


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


def test_a_problem_cuts_endless_texts_and_writes_half_characters_as_escapes():
    problem = Problem(code=ErrorCode.USER_CODE, what="a\udcff", why="x" * 10**6, details="begin" + "y" * 10**6 + "end")
    assert problem.what == "a\\udcff"
    assert len(problem.why) == TEXT_LIMIT
    assert len(problem.details) == DETAILS_LIMIT
    assert problem.details.startswith("begin") and problem.details.endswith("end")


def test_the_message_of_an_exception_is_read_even_if_its_text_raises():
    class OddError(Exception):
        def __str__(self):
            raise RuntimeError

    assert "cannot be read" in message_of(OddError())
    assert message_of(ValueError("one\n two")) == "one two"
