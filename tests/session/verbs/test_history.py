"""Past runs, as the session's verbs."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobCancelled, JobFailed, JobFinished, TargetFinished
from ace_studio.records.results import ResultStatus, encode_result
from ace_studio.records.scratch import process_mark
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.session import HISTORY_WAIT_S, Session
from tests.session.fake_engine_link import READY, captured, lost, result, target_run


def test_past_runs_are_listed_opened_again_and_forgotten(opened, engine, model):
    opened.history.load_history()
    assert opened.document.history == ()
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/out"))
    (past,) = opened.document.history
    assert (past.title, past.output) == ("model.py", "/out")
    opened.choices.set_entry("other")
    opened.history.open_past_run(past.id)
    assert (opened.document.recipe.model.entry, opened.document.folder) == ("make_model", str(model.parent))
    assert opened.document.recipe_path == ""
    opened.history.remove_past_runs([past.id])
    assert opened.document.history == ()


def test_a_past_run_is_tagged_and_one_that_is_not_there_is_a_problem(opened, engine):
    opened.history.load_history()
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/out"))
    (past,) = opened.document.history
    opened.history.set_tags(past.id, ["slow", "fast", "fast"])
    assert opened.document.history[0].tags == ("fast", "slow")
    opened.history.set_tags(past.id + 1, ["x"])
    assert opened.document.problems[-1].what == f"There is no run {past.id + 1} in the history"


HOLD = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process holds the history."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield
        process.stdin.close()


def test_a_history_that_another_program_holds_is_read_and_written_as_soon_as_it_is_free(opened, engine, tmp_path):
    assert HISTORY_WAIT_S <= 0.05
    opened.history.store.list()
    with held(tmp_path / "user" / "data" / "history.sqlite"):
        opened.history.load_history()
        opened.history.load_history()
        opened.jobs.run()
        opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/out"))
        opened.history.retry()
        assert opened.document.history is None and opened.document.history_waits
        (problem,) = opened.document.problems
        assert "in use by another program" in problem.what and "tried again" in problem.remedy
    opened.history.retry()
    assert [run.output for run in opened.document.history] == ["/out"]
    assert opened.document.problems == () and not opened.document.history_waits


NOTES = "user/data/history.started"


def failed(job: str, code: ErrorCode) -> JobFailed:
    return JobFailed(job=job, problems=(Problem(code=code, what="it went wrong"),))


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (lambda job: JobCancelled(job=job), "cancelled"),
        (lambda job: lost(ErrorCode.CANCELLED, job=job), "cancelled"),
        (lambda job: lost(job=job), "crashed"),
        (lambda job: failed(job, ErrorCode.OUT_OF_MEMORY), "failed"),
    ],
)
def test_a_run_without_a_result_is_in_the_history_with_what_was_measured(opened, engine, ending, status, tmp_path):
    opened.history.load_history()
    opened.jobs.run()
    job = engine.job
    assert len(list((tmp_path / NOTES).iterdir())) == 1
    opened.apply(captured(job, "conv", "relu"))
    opened.apply(TargetFinished(job=job, fingerprint="f1", index=0, run=target_run("openvino")))
    opened.apply(ending(job))
    (line,) = opened.document.history
    assert (line.status, line.title, line.target, line.latency_ms) == (status, "model.py", "", None)
    assert list((tmp_path / NOTES).iterdir()) == []
    opened.apply(READY)
    opened.history.look_at_run(line.id)
    assert [run.target for run in opened.document.runs] == ["openvino"]
    assert opened.document.graph.op_id == ("conv", "relu")
    assert len(opened.document.problems) == 1


def test_the_figures_that_a_run_wrote_count_more_than_those_that_came(opened, engine, tmp_path):
    opened.jobs.run(tmp_path / "out")
    (tmp_path / "out").mkdir()
    written = replace(
        result(target_run("eager"), target_run("openvino")),
        status=ResultStatus.FAILED,
        chosen=None,
        fingerprint="of-job",
    )
    opened.apply(captured(engine.job, "conv", "relu"))
    (tmp_path / "out" / "result.json").write_bytes(encode_result(written))
    opened.apply(lost(job=engine.job))
    (line,) = opened.history.store.list()
    assert [run.target for run in opened.history.store.get(line.id).result.runs] == ["eager", "openvino"]
    while opened.history.graphs.find("of-job") is None:  # a thread writes it
        time.sleep(0.01)
    opened.apply(READY)
    opened.history.look_at_run(line.id)
    assert opened.document.graph.op_id == ("conv", "relu"), "the graph is found by the fingerprint of what was written"


def test_a_refused_run_a_trace_and_a_look_at_a_file_are_no_runs(opened, engine):
    opened.jobs.run()
    opened.apply(failed(engine.job, ErrorCode.UNTRUSTED))
    opened.jobs.cancel()
    opened.apply(lost(ErrorCode.CANCELLED))
    opened.apply(READY)
    opened.jobs.trace()
    opened.apply(failed(engine.job, ErrorCode.NOT_CAPTURED))
    assert opened.history.store.list() == ()


def test_a_run_sent_to_a_dying_engine_has_not_ended(opened, engine):
    opened.jobs.trace()
    old = engine.job
    opened.jobs.cancel()
    opened.apply(JobCancelled(job=old))
    opened.jobs.run()
    opened.apply(lost(ErrorCode.CANCELLED, job=old))
    assert opened.history.store.list() == ()
    opened.apply(READY)
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/out"))
    assert [line.status for line in opened.history.store.list()] == ["ok"]


def test_a_run_is_cancelled_by_a_new_engine_and_by_the_end_of_the_window(opened, engine):
    opened.jobs.run()
    opened.jobs.restart_engine()
    opened.apply(READY)
    opened.jobs.run()
    opened.close()
    opened.apply(lost(ErrorCode.CANCELLED, job=engine.job))
    assert [line.status for line in opened.history.store.list()] == ["cancelled", "cancelled"]
    errors = [opened.history.store.get(line.id).result.error.why for line in opened.history.store.list()]
    assert errors == ["the window was closed", "the engine was started anew"]


def test_a_run_that_a_killed_window_left_is_listed_by_the_next_one(opened, engine, tmp_path):
    opened.jobs.run()
    (note,) = (tmp_path / NOTES).iterdir()
    note.write_bytes(note.read_bytes().replace(process_mark(os.getpid()).encode(), b"1.1.1"))
    again = Session(engine, folders=UserFolders.inside(tmp_path / "user"))
    again.history.load_history()
    (line,) = again.document.history
    assert (line.status, line.title) == ("crashed", "model.py")
    again.history.open_past_run(line.id)
    assert again.document.recipe.model.source == "model.py"


def test_a_run_has_a_name_wherever_it_is_shown(opened, engine):
    opened.history.load_history()
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output=opened.document.output))
    (line,) = opened.document.history
    opened.comparing.pin_run(0, line.id)
    opened.comparing.pin_run(1, line.id, row=0)
    opened.history.look_at_run(line.id)
    opened.history.set_name(line.id, "no pruning")
    assert opened.document.history[0].label == opened.document.past.label == "no pruning"
    assert all(pin.name.startswith("no pruning, ") for pin in opened.document.pins)
    opened.comparing.clear()
    opened.comparing.pin_shown(0)
    assert opened.document.pins[0].name.startswith("no pruning, best eager")
    opened.history.set_name(line.id, "")
    assert opened.document.pins[0].name.startswith("model.py, best eager")


def test_a_run_is_called_otherwise_also_where_it_is_pinned_with_another_model(opened, engine, model):
    opened.history.load_history()
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output=opened.document.output))
    (line,) = opened.document.history
    opened.comparing.pin_run(0, line.id)
    opened.comparing.pin_run(1, line.id)
    other = model.with_name("other.py")
    other.write_text("")
    opened.files.open_path(other)
    assert opened.document.pins == (None, None)
    opened.history.set_name(line.id, "first")
    opened.files.open_path(model)
    assert [pin.name.split(",")[0] for pin in opened.document.pins] == ["first", "first"]


def test_opening_another_model_keeps_what_the_run_had_measured(opened, engine, tmp_path):
    other = tmp_path / "other.py"
    other.write_text("x = 1\n")
    opened.jobs.run()
    job = engine.job
    opened.apply(captured(job, "conv", "relu"))
    opened.apply(TargetFinished(job=job, fingerprint="f1", index=0, run=target_run("openvino")))
    opened.files.open_path(other)
    opened.apply(JobCancelled(job=job))
    (line,) = opened.history.store.list()
    found = opened.history.store.get(line.id).result
    assert (line.status, line.title, found.error.why) == ("cancelled", "model.py", "another model was opened")
    assert [run.target for run in found.runs] == ["openvino"]
