"""The events of a job become its answer."""

from __future__ import annotations

from ace_studio.cli.console import Console
from ace_studio.cli.follow import follow
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import (
    AttemptEnded,
    DoctorRequest,
    JobCancelled,
    JobWarned,
    LogLine,
    WarningFound,
    WorkerLost,
)
from ace_studio.records.results import AttemptStatus, CaptureAttempt, Warning

REQUEST = DoctorRequest(job="j")


def attempt(status: AttemptStatus, **fields) -> AttemptEnded:
    return AttemptEnded(outcome=CaptureAttempt(name="export", status=status, **fields))


def test_a_capture_method_that_ran_again_after_a_crash_is_listed_once(answer_with, capsys):
    crash = Problem(code=ErrorCode.CRASH, what="export ended the process")
    answer_with(attempt(AttemptStatus.CRASHED, error=crash), attempt(AttemptStatus.OK))
    answer = follow(REQUEST, Console(as_json=True))
    assert [one.status for one in answer.rungs] == [AttemptStatus.OK]
    assert "export ended the process; going on without it" in capsys.readouterr().err


def test_a_lost_worker_and_a_cancelled_job_are_problems(answer_with):
    answer_with(WorkerLost(problem=Problem(code=ErrorCode.CRASH, what="gone")))
    assert [one.code for one in follow(REQUEST, Console(as_json=True)).problems] == [ErrorCode.CRASH]
    answer_with(JobCancelled())
    assert [one.code for one in follow(REQUEST, Console(as_json=True)).problems] == [ErrorCode.CANCELLED]


def test_what_the_users_code_prints_goes_to_stderr(answer_with, capsys):
    answer_with(LogLine(text="[hello]"))
    assert follow(REQUEST, Console(as_json=False)).problems == ()
    out, err = capsys.readouterr()
    assert (out, err) == ("", "[hello]\n")


def test_a_warning_of_a_running_job_goes_to_stderr_with_its_remedy(answer_with, capsys):
    answer_with(JobWarned(problem=Problem(code=ErrorCode.OUT_OF_MEMORY, what="nearly full", remedy="use less")))
    assert follow(REQUEST, Console(as_json=True)).problems == ()
    assert capsys.readouterr().err == "warning: nearly full\n  remedy: use less\n"


def test_a_warning_is_said_when_it_is_found_and_not_again_with_the_result(answer_with, capsys):
    leaked, console = Warning(code="leaked-calibration", what="16 of 16 samples"), Console(as_json=True)
    answer_with(WarningFound(warning=leaked))
    follow(REQUEST, console)
    console.warn(leaked)
    assert capsys.readouterr().err == "warning: 16 of 16 samples\n"


def test_ctrl_c_ends_the_job_as_cancelled(monkeypatch):
    class Interrupted:
        closed = 0

        def run(self, request):
            raise KeyboardInterrupt
            yield

        def close(self):
            Interrupted.closed += 1

    monkeypatch.setattr("ace_studio.cli.follow.WorkerExecutor", Interrupted)
    (problem,) = follow(REQUEST, Console(as_json=True)).problems
    assert problem.code is ErrorCode.CANCELLED
    assert Interrupted.closed
