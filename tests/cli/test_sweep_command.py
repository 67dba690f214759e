import importlib.util
import json
import sys
from pathlib import Path

import pytest

from ace_studio.cli import run_command, sweep_command
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.sweeps import RowStatus, SweepEnded, SweepReport, SweepRow, SweepStatus
from ace_studio.sweeps import running
from ace_studio.sweeps.running import SweepAdvanced

DONE = SweepRow(
    job="1", recipe="a.toml", axes={"plan": "fp32"}, status=RowStatus.DONE, target="eager", precision="fp32",
    latency_ms=1.25, speedup=2.0, float_speedup=1.5, metric=0.9, size_bytes=2_500_000, goal_met=True, on_front=True,
)  # fmt: skip
FAILED = SweepRow(
    job="2", recipe="a.toml", axes={"plan": "bf16"}, status=RowStatus.FAILED,
    error=Problem(code=ErrorCode.NOT_CAPTURED, what="No graph"),
)  # fmt: skip


@pytest.fixture
def answer(monkeypatch, tmp_path):
    (tmp_path / "a.toml").write_text('format = 1\n[model]\nsource = "a.onnx"\n')
    (tmp_path / "s.toml").write_text('format = 1\nrecipes = ["a.toml"]\n[axes]\nplan = ["fp32", "bf16"]\n')
    asked = []

    def answers(status, *rows):
        def run(jobs, out, options, on_event):
            asked.append((jobs, out, options))
            on_event(SweepAdvanced(row=rows[0], done=1, total=2, workers=2, remaining_s=30.0))
            return SweepReport(status=status, rows=rows)

        monkeypatch.setattr(running, "run_sweep", run)
        return asked

    return answers


def words(tmp_path, *more):
    return ["sweep", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"), *more]


def test_a_sweep_prints_its_rows_its_front_and_its_files(answer, tmp_path, capsys):
    asked = answer(SweepStatus.OK, DONE)
    assert run_command(words(tmp_path, "--trust", "--scheduler", "tcp://box:8786")) == 0
    shown = capsys.readouterr()
    ((jobs, out, options),) = asked
    assert [job.axes for job in jobs] == [{"plan": "fp32"}, {"plan": "bf16"}]
    assert (out, options.trust, options.scheduler) == (tmp_path / "out", True, "tcp://box:8786")
    for word in ("fp32", "*", "1.250", "2.00x", "1.50x", "0.9000", "2.500", "met", "sweep.html"):
        assert word in shown.out
    assert "1 of 2: job 1" in shown.err
    assert "about 30 s left" in shown.err


def test_recipes_alone_are_a_sweep_into_a_folder_of_its_own(answer, tmp_path, monkeypatch):
    asked = answer(SweepStatus.OK, DONE)
    monkeypatch.chdir(tmp_path)
    assert run_command(["sweep", "a.toml", "--scheduler", "tcp://box:8786"]) == 0
    ((jobs, out, _),) = asked
    assert ([job.recipe_path for job in jobs], out) == (["a.toml"], Path.cwd() / "ace-output/sweep")


def test_json_has_one_row_per_job(answer, tmp_path, capsys):
    answer(SweepStatus.INCOMPLETE, DONE, FAILED)
    assert run_command(words(tmp_path, "--json")) == 3
    found = json.loads(capsys.readouterr().out)
    assert [(row["axes"], row["status"], row["latency_ms"]) for row in found["rows"]] == [
        ({"plan": "fp32"}, "done", 1.25), ({"plan": "bf16"}, "failed", None)
    ]  # fmt: skip


def test_a_job_without_a_result_says_why_in_its_row(answer, tmp_path, capsys):
    answer(SweepStatus.INCOMPLETE, DONE, FAILED)
    run_command(words(tmp_path))
    assert "No graph" in capsys.readouterr().out


def test_a_cancelled_sweep_exits_as_cancelled(answer, tmp_path):
    answer(SweepStatus.CANCELLED, DONE)
    assert run_command(words(tmp_path)) == 130


def test_the_installed_program_which_has_no_dask_runs_a_sweep_in_the_python_that_has_it(
    tmp_path, capsys, monkeypatch, answer
):
    answer(SweepStatus.OK, DONE)
    report = SweepReport(status=SweepStatus.CANCELLED, rows=(DONE,))
    orders, stopped = [], []

    class Process:
        def __init__(self, order, tell):
            orders.append(order)
            self._tell = tell
            tell(SweepAdvanced(row=DONE, done=1, total=2, workers=2, remaining_s=30.0))

        def stop(self):
            stopped.append(True)
            self._tell(SweepEnded(report=report))

    def interrupted(event, console):
        raise KeyboardInterrupt

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "distributed" else found(name))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sweep_command, "SweepProcess", Process)
    monkeypatch.setattr(sweep_command, "_say", interrupted)
    assert run_command(words(tmp_path, "--trust", "--scheduler", "tcp://box:8786")) == 130
    (order,) = orders
    assert (order.trust, order.scheduler, order.out) == (True, "tcp://box:8786", str(tmp_path / "out"))
    assert stopped and "1.250" in capsys.readouterr().out


def test_without_dask_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "distributed" else found(name))
    assert run_command(words(tmp_path)) == 6
    assert "ace-studio[sweep]" in capsys.readouterr().err
