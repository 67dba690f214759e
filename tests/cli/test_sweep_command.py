import json

import pytest

from ace_studio.cli import run_command, sweep_command
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.sweeps import RowStatus, SweepEnded, SweepReport, SweepRow, SweepStatus
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
    orders = []

    def answers(status, *rows):
        def start(order, tell):
            orders.append(order)
            tell(SweepAdvanced(row=rows[0], done=1, total=2, workers=2, remaining_s=30.0))
            tell(SweepEnded(report=SweepReport(status=status, rows=rows)))

        monkeypatch.setattr(sweep_command, "SweepProcess", start)
        return orders

    return answers


def words(tmp_path, *more):
    return ["sweep", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"), *more]


def test_a_sweep_prints_its_rows_its_front_and_its_files(answer, tmp_path, capsys):
    orders = answer(SweepStatus.OK, DONE)
    assert run_command(words(tmp_path, "--trust", "--scheduler", "tcp://box:8786")) == 0
    shown = capsys.readouterr()
    (order,) = orders
    assert (order.sweep.axes, order.folder) == ({"plan": ("fp32", "bf16")}, str(tmp_path))
    assert (order.out, order.trust, order.scheduler) == (str(tmp_path / "out"), True, "tcp://box:8786")
    for word in ("fp32", "*", "1.250", "2.00x", "1.50x", "0.9000", "2.500", "met", "sweep.html"):
        assert word in shown.out
    assert "1 of 2: job 1" in shown.err
    assert "about 30 s left" in shown.err


def test_recipes_alone_are_a_sweep_into_a_folder_of_its_own(answer, tmp_path, monkeypatch):
    orders = answer(SweepStatus.OK, DONE)
    monkeypatch.chdir(tmp_path)
    assert run_command(["sweep", "a.toml", "--scheduler", "tcp://box:8786"]) == 0
    (order,) = orders
    assert (order.sweep.recipes, order.out) == (("a.toml",), str(tmp_path / "ace-output" / "sweep"))


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


def test_ctrl_c_stops_the_process_of_the_sweep_and_what_is_done_is_shown(tmp_path, capsys, monkeypatch, answer):
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

    monkeypatch.setattr(sweep_command, "SweepProcess", Process)
    monkeypatch.setattr(sweep_command, "_say", interrupted)
    assert run_command(words(tmp_path, "--trust", "--scheduler", "tcp://box:8786")) == 130
    (order,) = orders
    assert (order.trust, order.scheduler, order.out) == (True, "tcp://box:8786", str(tmp_path / "out"))
    assert stopped and "1.250" in capsys.readouterr().out


def test_without_dask_the_command_says_what_to_install(tmp_path, capsys, monkeypatch, answer):
    answer(SweepStatus.OK, DONE)
    missing = Problem(code=ErrorCode.NOT_INSTALLED, what="A sweep needs dask", remedy="pip install 'distributed'")
    monkeypatch.setattr(sweep_command, "SweepProcess", lambda order, tell: tell(SweepEnded(problems=(missing,))))
    assert run_command(words(tmp_path)) == 6
    assert "pip install 'distributed'" in capsys.readouterr().err
