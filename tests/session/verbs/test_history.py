"""Past runs, as the session's verbs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ace_studio.records.messages import (
    JobFinished,
)
from ace_studio.session.session import HISTORY_WAIT_S
from tests.session.fake_engine_link import result, target_run


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
