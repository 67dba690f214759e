"""Runs that have started, and what becomes of them if their process dies."""

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.results import Result, ResultStatus, encode_result
from ace_studio.records.scratch import process_mark
from ace_studio.session.kept.autosave import StartedRun, ended_early, remove
from ace_studio.session.kept.history import History
from tests.session.fake_engine_link import result, target_run


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "h.sqlite")


@pytest.fixture
def run(tmp_path: Path) -> StartedRun:
    """A run of a process that has ended since."""
    (tmp_path / "out").mkdir()
    of = Recipe(model=ModelChoice(source="m.py"))
    made = StartedRun.of(of, title="m.py", folder=str(tmp_path), output=str(tmp_path / "out"))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        mark = process_mark(process.pid)
        process.communicate(b"\n")
    return replace(made, process=mark)


def leave(run: StartedRun, found: Result) -> None:
    (Path(run.output) / "result.json").write_bytes(encode_result(found))


def test_a_run_whose_process_died_is_taken_in_once_with_the_figures_it_left(history, run):
    history.started.note(run)
    leave(run, replace(result(target_run("eager")), status=ResultStatus.FAILED, chosen=None))
    assert [line.status for line in history.list()] == ["crashed"]
    (line,) = history.list()
    past = history.get(line.id)
    assert (past.result.runs[0].target, past.result.chosen, past.folder) == ("eager", None, run.folder)
    assert past.result.error.what == "The run has not come to its end"
    assert line.latency_ms is None and line.is_unfinished
    assert abs((run.date - datetime.fromisoformat(line.date)).total_seconds()) < 1


def test_a_run_that_wrote_its_whole_result_before_its_window_died_is_finished(history, run):
    history.started.note(run)
    leave(run, result(target_run("eager")))
    (line,) = history.list()
    assert (line.status, line.target) == ("ok", "eager")


def test_what_an_earlier_run_left_in_the_folder_is_not_its_figures(history, run):
    leave(run, result(target_run("eager")))
    again = StartedRun.of(Recipe(), title="m.py", folder=run.folder, output=run.output)
    history.started.note(replace(again, process=run.process))
    (line,) = history.list()
    assert (line.status, history.get(line.id).result.runs) == ("crashed", ())


def test_a_run_that_goes_on_here_or_elsewhere_is_left_alone_and_one_that_ended_too(history, run):
    own = StartedRun.of(Recipe(), title="own", folder="", output="")
    history.started.note(own)
    history.started.note(replace(run, machine="another"))
    remove(history.started.note(run))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        history.started.note(replace(run, process=process_mark(process.pid), began_s=0.0))  # before the clock was set
        assert history.list() == ()
        process.communicate(b"\n")
    assert [line.status for line in history.list()] == ["crashed"]


def test_a_process_that_has_only_got_the_number_of_a_dead_one_does_not_keep_its_run(history, run):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        history.started.note(replace(run, process=process_mark(process.pid).replace(".", ".1", 1)))
        assert [line.status for line in history.list()] == ["crashed"]
        process.communicate(b"\n")


@pytest.mark.parametrize(
    "change",
    [
        {"output": "\0"},
        {"process": "-1.2"},
        {"began_s": 1e300},
        {"process": f"{2**62}."},
        {"process": "\u00b2"},
        {"title": None},
    ],
)
def test_a_note_that_somebody_changed_is_no_obstacle(history, run, change, tmp_path):
    (tmp_path / "h.started").mkdir()
    (tmp_path / "h.started" / "a.json").write_bytes(msgspec.json.encode(msgspec.to_builtins(run) | change))
    (tmp_path / "h.started" / "b.json").mkdir()
    (tmp_path / "h.started" / "c.json").write_bytes(b"[" * 100_000)
    assert all(line.status == "crashed" for line in history.list())


@pytest.mark.parametrize(
    ("code", "status"),
    [(ErrorCode.CANCELLED, "cancelled"), (ErrorCode.CRASH, "crashed"), (ErrorCode.NOT_CAPTURED, "failed")],
)
def test_how_a_run_ended_follows_from_its_problem(code, status):
    problem = Problem(code=code, what="x")
    said, record = ended_early(problem, result(target_run("eager")))
    assert (said, record.error, record.chosen, len(record.runs)) == (status, problem, None, 1)
    assert record.status == ("cancelled" if status == "cancelled" else "failed")


def test_unfinished_runs_are_in_no_forecast(history, run, tmp_path):
    done = replace(result(target_run("eager")), seconds=10.0)
    history.remember(done, Recipe(model=ModelChoice(source="m.py")), tmp_path, output=tmp_path)
    for code in (ErrorCode.CANCELLED, ErrorCode.CRASH, ErrorCode.OUT_OF_MEMORY):
        history.add_unfinished(run, Problem(code=code, what="x"), replace(done, seconds=2.0))
    assert {line.status for line in history.list()} == {"ok", "cancelled", "crashed", "failed"}
    assert history.usual_seconds(tmp_path, "m.py") == 10.0


def test_a_run_that_was_not_trusted_never_began(history, run):
    assert history.add_unfinished(run, Problem(code=ErrorCode.UNTRUSTED, what="x")) is None
    assert history.list() == ()
