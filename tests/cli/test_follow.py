"""The events of a job become its answer."""

import sys

import pytest

from ace_studio.cli import follow as follow_module
from ace_studio.cli import run_command
from ace_studio.cli.app import Console
from ace_studio.cli.follow import follow
from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.recipe import EngineChoice, ModelChoice, Recipe
from ace_studio.records.results import AttemptStatus, CaptureAttempt, Warning
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import Settings

REQUEST = messages.DoctorRequest(job="j")


def attempt(status: AttemptStatus, **fields) -> messages.AttemptEnded:
    return messages.AttemptEnded(outcome=CaptureAttempt(name="export", status=status, **fields))


def test_a_capture_method_that_ran_again_after_a_crash_is_listed_once(answer_with, capsys):
    crash = Problem(code=ErrorCode.CRASH, what="export ended the process")
    answer_with(attempt(AttemptStatus.CRASHED, error=crash), attempt(AttemptStatus.OK))
    answer = follow(REQUEST, Console(as_json=True))
    assert [one.status for one in answer.rungs] == [AttemptStatus.OK]
    assert "export ended the process; going on without it" in capsys.readouterr().err


def test_a_lost_worker_and_a_cancelled_job_are_problems(answer_with):
    answer_with(messages.WorkerLost(problem=Problem(code=ErrorCode.CRASH, what="gone")))
    assert [one.code for one in follow(REQUEST, Console(as_json=True)).problems] == [ErrorCode.CRASH]
    answer_with(messages.JobCancelled())
    assert [one.code for one in follow(REQUEST, Console(as_json=True)).problems] == [ErrorCode.CANCELLED]


def test_what_the_users_code_prints_goes_to_stderr(answer_with, capsys):
    answer_with(messages.LogLine(text="[hello]"))
    assert follow(REQUEST, Console(as_json=False)).problems == ()
    out, err = capsys.readouterr()
    assert (out, err) == ("", "[hello]\n")


def test_a_warning_of_a_running_job_goes_to_stderr_with_its_remedy(answer_with, capsys):
    answer_with(
        messages.JobWarned(problem=Problem(code=ErrorCode.OUT_OF_MEMORY, what="nearly full", remedy="use less"))
    )
    assert follow(REQUEST, Console(as_json=True)).problems == ()
    assert capsys.readouterr().err == "warning: nearly full\n  remedy: use less\n"


def test_a_warning_is_said_when_it_is_found_and_not_again_with_the_result(answer_with, capsys):
    leaked, console = Warning(code="leaked-calibration", what="16 of 16 samples"), Console(as_json=True)
    answer_with(messages.WarningFound(warning=leaked))
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


@pytest.fixture
def started(answer_with, monkeypatch):
    """The interpreters of the engines that were started."""
    answer_with()
    found = []
    monkeypatch.setattr(follow_module, "EngineClient", lambda python, **_: found.append(python))
    monkeypatch.setattr(follow_module, "check_python", lambda python: f"checked {python}")
    return found


def test_the_python_of_an_option_or_of_the_folder_is_checked_and_runs_the_engine(started, capsys, tmp_path):
    console = Console(as_json=True)
    trace = messages.TraceRequest(job="t", recipe=Recipe(model=ModelChoice(source="sub/net.py")), folder=str(tmp_path))
    follow(REQUEST, console, python="/a/python")
    assert started == ["checked /a/python"] and not capsys.readouterr().err
    follow(trace, console)
    assert started == ["checked /a/python"]
    Settings(UserFolders.of_user().settings).choose_interpreter(str(tmp_path), "/project/python")
    follow(trace, console)
    assert "The engine runs in checked /project/python, which was chosen for the folder" in capsys.readouterr().err
    follow(trace, console, python="/a/python")
    assert started[1:] == ["checked /project/python", "checked /a/python"]
    follow(REQUEST, console)
    assert len(started) == 3


def test_a_python_of_this_machine_and_an_engine_on_another_one_contradict_each_other(started, tmp_path):
    recipe = Recipe(model=ModelChoice(source="net.py"), engine=EngineChoice(host="box"))
    trace = messages.TraceRequest(job="t", recipe=recipe, folder=str(tmp_path))
    with pytest.raises(AceError) as caught:
        follow(trace, Console(as_json=True), python="/a/python")
    assert caught.value.problem.code is ErrorCode.USAGE and "box" in caught.value.problem.what
    Settings(UserFolders.of_user().settings).choose_interpreter(str(tmp_path), "/project/python")
    follow(trace, Console(as_json=True))
    assert started == [""]


@pytest.mark.skipif(sys.platform == "win32", reason="the Python is a shell script")
@pytest.mark.parametrize("command", ["trace", "run", "doctor"])
def test_commands_refuse_a_python_in_which_no_engine_can_run(command, recipe, capsys, tmp_path):
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    words = {"doctor": [], "run": [str(recipe), "--out", str(tmp_path / "out")]}.get(command, [str(recipe)])
    assert run_command([command, *words, "--python", str(bare)]) == 6
    assert "-m pip install 'msgspec" in capsys.readouterr().err
