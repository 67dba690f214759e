"""Whatever a handler does becomes exactly one event that ends its job."""

import importlib
import sys
from pathlib import Path

import pytest

from ace_studio.engine.progress import Reporter
from ace_studio.jobs.answer import HANDLER_NAMES, answer_request, load_handlers, with_cause
from ace_studio.records import messages
from ace_studio.records.errors import DETAILS_LIMIT, AceError, ErrorCode

REPORT = messages.FileReport(path="m.py", kind="python", label="Python", sha256="0", size_bytes=1, trust="code")
REQUEST = messages.InspectRequest(job="j", path="m.py")


USER_ERRORS = "ace_studio.engine.load.user_errors"


@pytest.fixture(autouse=True)
def without_engine(monkeypatch):
    """This file would count as the user's code; without the engine there is none."""
    monkeypatch.delitem(sys.modules, USER_ERRORS, raising=False)


def answer(handler, *, is_cancelled: bool = False) -> tuple[messages.AnyEvent, list[messages.Event]]:
    events: list[messages.Event] = []
    end = answer_request(REQUEST, handler, emit=events.append, is_cancelled=lambda: is_cancelled)
    assert end.job == "j"
    return end, events


def failure(error: BaseException) -> messages.JobFailed:
    def handler(request: messages.InspectRequest, reporter: Reporter) -> None:
        raise error

    end, _ = answer(handler)
    assert isinstance(end, messages.JobFailed)
    return end


def test_events_carry_the_job_and_the_one_that_ends_it_is_held_back() -> None:
    def handler(request: messages.InspectRequest, reporter: Reporter) -> None:
        reporter.emit(messages.FileInspected(report=REPORT))
        reporter.phase(messages.Phase.LOAD, "late")

    end, events = answer(handler)
    assert isinstance(end, messages.FileInspected)
    assert [(type(event), event.job) for event in events] == [(messages.Progress, "j")]


def test_a_handler_that_reports_nothing_is_a_failure_that_names_it() -> None:
    end, _ = answer(lambda request, reporter: None)
    assert isinstance(end, messages.JobFailed)
    assert "inspect returned" in end.problems[0].why


def test_a_job_that_was_cancelled_before_it_began_does_not_begin() -> None:
    end, _ = answer(lambda request, reporter: pytest.fail("it ran"), is_cancelled=True)
    assert isinstance(end, messages.JobCancelled)


def test_problems_of_an_ace_error_are_passed_on() -> None:
    error = AceError.of(ErrorCode.BAD_FILE, "m.py is empty", remedy="save it again")
    assert failure(error).problems == error.problems


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), ErrorCode.OUT_OF_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), ErrorCode.OUT_OF_MEMORY),
        (SystemExit(3), ErrorCode.USER_CODE),
        (KeyboardInterrupt(), ErrorCode.USER_CODE),
        (ZeroDivisionError("x"), ErrorCode.INTERNAL),
        (GeneratorExit(), ErrorCode.INTERNAL),
    ],
)
def test_every_other_exception_becomes_a_problem_with_its_traceback(error: BaseException, code: ErrorCode) -> None:
    (problem,) = failure(error).problems
    assert problem.code is code
    assert type(error).__name__ in problem.details
    assert problem.remedy


@pytest.mark.parametrize("error", [ValueError("late"), GeneratorExit(), SystemExit(2), KeyboardInterrupt()])
def test_what_the_user_s_file_raises_unexpectedly_is_told_with_its_line(error: BaseException) -> None:
    importlib.import_module(USER_ERRORS)
    (problem,) = failure(error).problems
    assert problem.code is ErrorCode.USER_CODE
    assert problem.where.startswith(f"{__file__}:")
    assert type(error).__name__ in problem.what


def test_an_error_of_the_engine_below_the_user_s_code_stays_a_bug_to_report() -> None:
    importlib.import_module(USER_ERRORS)

    def handler(request: messages.InspectRequest, reporter: Reporter) -> None:
        AceError()  # a caller's mistake, raised in our own file

    end, _ = answer(handler)
    assert isinstance(end, messages.JobFailed)
    assert end.problems[0].code is ErrorCode.INTERNAL
    assert "report it" in end.problems[0].remedy


def test_an_interrupt_of_a_cancelled_job_is_its_cancellation() -> None:
    cancelled = iter([False, True])

    def handler(request: messages.InspectRequest, reporter: Reporter) -> None:
        raise KeyboardInterrupt

    end = answer_request(REQUEST, handler, emit=lambda event: None, is_cancelled=lambda: next(cancelled))
    assert isinstance(end, messages.JobCancelled)


def test_a_long_traceback_is_cut_at_its_beginning() -> None:
    (problem,) = failure(RuntimeError("x" * 2 * DETAILS_LIMIT + "end")).problems
    assert len(problem.details) == DETAILS_LIMIT
    assert problem.details.rstrip().endswith("end")


def test_handlers_are_loaded_from_a_file_by_the_names_in_the_table(tmp_path: Path) -> None:
    names = " = ".join(HANDLER_NAMES.values())
    (tmp_path / "my_handlers.py").write_text(f"{names} = print\n")
    assert set(load_handlers(str(tmp_path / "my_handlers.py"))) == set(HANDLER_NAMES)
    (tmp_path / "my_handlers.py").write_text("inspect = print\n")
    with pytest.raises(AttributeError):
        load_handlers(str(tmp_path / "my_handlers.py"))


def test_a_job_that_failed_because_it_closed_files_of_the_engine_is_told_that() -> None:
    def handler(*_):
        raise OSError(9, "Bad file descriptor")

    failed, _ = answer(handler)
    told = with_cause(failed, ("it closed descriptors that are not its own (0, 1)",))
    (problem,) = told.problems
    assert problem.code is ErrorCode.USER_CODE and "closed files of the engine" in problem.what
    assert "(0, 1)" in problem.why and "go on" not in problem.remedy
    assert with_cause(failed, ()) is failed
