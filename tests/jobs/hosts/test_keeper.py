"""When a keeper ends by itself, and what it removes of others that are gone."""

import os
import subprocess
import sys

import pytest

from ace_studio.jobs.hosts import keeper as keeper_module
from ace_studio.jobs.hosts.keeper import Keeper, sweep_sessions
from ace_studio.records.messages import JobFinished, LogLine, Phase, Progress

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a keeper needs sockets that are files")


def test_a_keeper_without_a_connection_ends_when_nothing_waits_for_it(tmp_path, monkeypatch):
    keeper = Keeper(tmp_path / "sessions" / "a")
    assert not keeper._is_forsaken()
    monkeypatch.setattr(keeper_module, "IDLE_S", -1.0)
    assert keeper._is_forsaken()
    keeper._running = 1
    assert not keeper._is_forsaken()  # the job goes on
    keeper._happened(JobFinished(job="j"))
    assert not keeper._is_forsaken()  # its end has not been seen
    monkeypatch.setattr(keeper_module, "UNSEEN_S", -1.0)
    assert keeper._is_forsaken()


def test_events_are_kept_until_they_are_seen_but_no_pulses(tmp_path):
    keeper = Keeper(tmp_path / "sessions" / "a")
    for event in (LogLine(text="a"), Progress(phase=Phase.LOAD, is_pulse=True), LogLine(text="b")):
        keeper._happened(event)
    assert [one.seq for one in keeper._events] == [1, 2]
    keeper._forget(1)
    assert [one.seq for one in keeper._events] == [2]


def test_folders_of_keepers_that_are_gone_are_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-S", "-c", ""])
    dead.wait()
    for name, pid in (("gone", dead.pid), ("here", os.getpid())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pid").write_text(str(pid))
    (tmp_path / "starting").mkdir()
    sweep_sessions(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "starting"]
