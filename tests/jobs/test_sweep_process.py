from __future__ import annotations

import queue
from pathlib import Path

import pytest

from ace_studio.jobs import sweep_process
from ace_studio.jobs.sweep_process import SweepProcess
from ace_studio.records.errors import ErrorCode
from ace_studio.records.sweeps import (
    Axis,
    JobAdvanced,
    RowStatus,
    Sweep,
    SweepAdvanced,
    SweepEnded,
    SweepOrder,
    SweepStatus,
)

FAKE = str(Path(__file__).parents[1] / "sweeps" / "fake_jobs.py")
TEXT = 'format = 1\n[model]\nsource = "model.py"\nentry = "{}"\n'


@pytest.fixture
def order(tmp_path):
    (tmp_path / "model.py").write_text("")
    return SweepOrder(
        sweep=Sweep(recipes=("a.toml",), axes={Axis.PLAN: ("fp32", "int8-static")}),
        folder=str(tmp_path),
        texts={"a.toml": TEXT.format("ok")},
        out=str(tmp_path / "out"),
        workers=1,
        handlers=FAKE,
    )


def started(order):
    told = queue.SimpleQueue()
    return SweepProcess(order, told.put), told


def events(told):
    """All events up to the end."""
    while True:
        event = told.get(timeout=60)
        yield event
        if isinstance(event, SweepEnded):
            return


def test_a_sweep_that_cannot_begin_says_why(order, tmp_path):
    process, told = started(SweepOrder(sweep=Sweep(recipes=("gone.toml",)), folder=str(tmp_path), out=order.out))
    (ended,) = events(told)
    process.wait(10)
    assert ended.report is None
    assert [one.code for one in ended.problems] == [ErrorCode.NOT_FOUND]


def test_a_process_that_dies_is_reported_with_what_it_printed(order, monkeypatch):
    monkeypatch.setattr(sweep_process, "_MODULE", "ace_studio.no_such_module")
    process, told = started(order)
    (ended,) = events(told)
    process.wait(10)
    assert ended.problems[0].code is ErrorCode.CRASH
    assert "no_such_module" in ended.problems[0].why


def test_a_sweep_that_is_stopped_before_it_begins_was_cancelled(order, monkeypatch):
    process, told = started(order)
    process.stop()
    ended = list(events(told))[-1]
    process.wait(10)
    codes = [one.code for one in ended.problems]
    assert codes == [ErrorCode.CANCELLED] or ended.report.status is SweepStatus.CANCELLED


@pytest.mark.slow
def test_a_stopped_sweep_keeps_what_is_done_and_goes_on(order, tmp_path):
    (tmp_path / "slow.toml").write_text(TEXT.format("tenths_300"))
    sweep = Sweep(recipes=("a.toml", "slow.toml"))
    process, told = started(SweepOrder(sweep=sweep, folder=str(tmp_path), texts=order.texts, out=order.out, workers=1,
                                       handlers=FAKE))  # fmt: skip
    for event in events(told):
        if isinstance(event, JobAdvanced) and event.detail == "tenths_300":
            process.stop()
    process.wait(10)
    assert event.report.status is SweepStatus.CANCELLED
    assert [row.status for row in event.report.rows] == [RowStatus.DONE, RowStatus.CANCELLED]
    (tmp_path / "slow.toml").write_text(TEXT.format("ok") + "[measure]\nrounds = 3\n")
    process, told = started(SweepOrder(sweep=sweep, folder=str(tmp_path), texts=order.texts, out=order.out, workers=1,
                                       handlers=FAKE))  # fmt: skip
    found = list(events(told))
    process.wait(10)
    begin = next(one for one in found if isinstance(one, SweepAdvanced))
    assert ([row.job for row in begin.kept], begin.done, begin.total) == (["1"], 1, 2)
    assert found[-1].report.status is SweepStatus.OK
