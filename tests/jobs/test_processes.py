"""Processes of a worker are found by the mark in their environment, and ended."""

import os
import secrets
import subprocess
import sys

import pytest

from ace_studio.jobs import processes
from ace_studio.jobs.processes import MARK_VARIABLE, kill_group, kill_marked, marked_processes, oom_kills

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
SLEEP = ["sleep", "60"]


@linux
def test_a_marked_process_is_found_and_killed_even_in_a_session_of_its_own() -> None:
    mark = secrets.token_hex(8)
    marked = subprocess.Popen(SLEEP, env={**os.environ, MARK_VARIABLE: mark}, start_new_session=True)
    other = subprocess.Popen(SLEEP, env={**os.environ, MARK_VARIABLE: mark + "0"})
    try:
        assert marked_processes(mark) == [marked.pid]
        kill_marked(mark)
        assert marked.wait(5) == -9
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.skipif(os.name != "posix", reason="process groups of POSIX")
def test_a_group_is_killed_and_a_group_that_is_gone_is_no_error() -> None:
    leader = subprocess.Popen(SLEEP, start_new_session=True)
    kill_group(leader.pid)
    assert leader.wait(5) == -9
    kill_group(leader.pid)


@pytest.mark.parametrize(("text", "count"), [("pgfault 9\noom_kill 3\n", 3), ("oom_kill many\n", 0), (None, 0)])
def test_kills_for_lack_of_memory_are_counted_if_the_system_counts_them(monkeypatch, tmp_path, text, count) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    if text is not None:
        (tmp_path / "vmstat").write_text(text)
    assert oom_kills() == count
