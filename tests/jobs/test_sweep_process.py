import os
import queue
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from ace_studio.jobs import sweep_process
from ace_studio.jobs.answer import HANDLERS_VARIABLE
from ace_studio.jobs.engine_packs import Pack
from ace_studio.jobs.sweep_process import SweepProcess
from ace_studio.records import sweeps
from ace_studio.records.errors import ErrorCode

TEXT = 'format = 1\n[model]\nsource = "model.py"\nentry = "{}"\n'


@pytest.fixture
def order(tmp_path, monkeypatch):
    monkeypatch.setenv(HANDLERS_VARIABLE, str(Path(__file__).parents[1] / "sweeps" / "fake_jobs.py"))
    (tmp_path / "model.py").write_text("")
    return sweeps.SweepOrder(
        sweep=sweeps.Sweep(recipes=("a.toml",), axes={sweeps.Axis.PLAN: ("fp32", "int8-static")}),
        folder=str(tmp_path),
        texts={"a.toml": TEXT.format("ok")},
        out=str(tmp_path / "out"),
        workers=1,
    )


def started(order):
    told = queue.SimpleQueue()
    return SweepProcess(order, told.put), told


def events(told):
    """All events up to the end."""
    while True:
        event = told.get(timeout=60)
        yield event
        if isinstance(event, sweeps.SweepEnded):
            return


def test_a_sweep_that_cannot_begin_says_why(order, tmp_path):
    process, told = started(
        sweeps.SweepOrder(sweep=sweeps.Sweep(recipes=("gone.toml",)), folder=str(tmp_path), out=order.out)
    )
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


@pytest.fixture
def pack(monkeypatch, tmp_path):
    """The window as an installed program, and the Python of an engine pack, on whose path ACE Studio is not."""
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={sysconfig.get_path("purelib")} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sweep_process, "best_pack", lambda: Pack(name="p", folder=str(tmp_path), python=str(python)))
    monkeypatch.setenv("ACE_STUDIO_PYTHON", str(python))
    monkeypatch.chdir(tmp_path)
    return python


@pytest.mark.skipif(os.name != "posix", reason="the Python of the pack is a shell script")
def test_the_python_of_a_pack_runs_a_sweep_with_the_programs_own_sources(order, pack):
    assert subprocess.run([pack, "-c", "import ace_studio.sweeps"], capture_output=True, check=False).returncode == 1
    process, told = started(order)
    ended = list(events(told))[-1]
    process.wait(10)
    assert not ended.problems
    assert [row.status for row in ended.report.rows] == [sweeps.RowStatus.DONE, sweeps.RowStatus.DONE]


@pytest.mark.skipif(os.name != "posix", reason="the Python of the pack is a shell script")
def test_a_python_without_dask_is_named_with_the_line_that_installs_it(order, pack):
    pack.write_text(f'#!/bin/sh\nPYTHONPATH={pack.parent} exec {sys.executable} -S "$@"\n')
    for name in ("msgspec", "psutil", "platformdirs"):
        (pack.parent / name).symlink_to(Path(sysconfig.get_path("purelib"), name))
    process, told = started(order)
    (ended,) = events(told)
    process.wait(10)
    (problem,) = ended.problems
    assert problem.code is ErrorCode.NOT_INSTALLED and problem.what == "A sweep needs dask"
    assert f"{pack} -m pip install 'cryptography" in problem.remedy and "'distributed>=" in problem.remedy


def test_what_a_sweep_needs_is_what_the_project_says(root):
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(sweeps.NEEDED_FOR_SWEEPS) == set(project["optional-dependencies"]["sweep"])


def test_a_sweep_that_is_stopped_before_it_begins_was_cancelled(order, monkeypatch):
    process, told = started(order)
    process.stop()
    ended = list(events(told))[-1]
    process.wait(10)
    codes = [one.code for one in ended.problems]
    assert codes == [ErrorCode.CANCELLED] or ended.report.status is sweeps.SweepStatus.CANCELLED


@pytest.mark.slow
def test_a_stopped_sweep_keeps_what_is_done_and_goes_on(order, tmp_path):
    (tmp_path / "slow.toml").write_text(TEXT.format("tenths_300"))
    sweep = sweeps.Sweep(recipes=("a.toml", "slow.toml"))
    process, told = started(sweeps.SweepOrder(sweep=sweep, folder=str(tmp_path), texts=order.texts, out=order.out,
                                              workers=1))  # fmt: skip
    for event in events(told):
        if isinstance(event, sweeps.JobAdvanced) and event.detail == "tenths_300":
            process.stop()
    process.wait(10)
    assert event.report.status is sweeps.SweepStatus.CANCELLED
    assert [row.status for row in event.report.rows] == [sweeps.RowStatus.DONE, sweeps.RowStatus.CANCELLED]
    (tmp_path / "slow.toml").write_text(TEXT.format("ok") + "[measure]\nrounds = 3\n")
    process, told = started(sweeps.SweepOrder(sweep=sweep, folder=str(tmp_path), texts=order.texts, out=order.out,
                                              workers=1))  # fmt: skip
    found = list(events(told))
    process.wait(10)
    begin = next(one for one in found if isinstance(one, sweeps.SweepAdvanced))
    assert ([row.job for row in begin.kept], begin.done, begin.total) == (["1"], 1, 2)
    assert found[-1].report.status is sweeps.SweepStatus.OK
