"""What a job may use: memory of all its processes, and time without a sign of life."""

import itertools
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from ace_studio.jobs import limit_watch
from ace_studio.jobs.limit_watch import LimitWatch, default_memory
from ace_studio.jobs.processes import kill_group
from ace_studio.records.errors import ErrorCode
from ace_studio.records.messages import JobCancelled, LogLine, Phase, Progress, TraceRequest
from ace_studio.records.recipes.recipe import LimitsChoice, ModelChoice, Recipe

HOLDS = "held = bytearray(200_000_000); print('ready', flush=True); input()"
SHARED = """
import mmap
held = mmap.mmap(-1, 200_000_000)  # anonymous and shared
held.write(b"x" * 200_000_000)
print("ready", flush=True)
input()
"""
FORKS = """
import os, time
held = bytearray(b"x") * 200_000_000
children = [os.fork(), os.fork()]
if 0 in children:
    time.sleep(60)
    os._exit(0)
print("ready", flush=True)
input()
"""
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDS!r}])"


class Watched:
    """A watch of a process, and what it did."""

    def __init__(self, pid, limits, *, usual=None):
        self.request = TraceRequest(
            job="trace", recipe=replace(Recipe(model=ModelChoice(source="net.py")), limits=limits), folder=""
        )
        self.over, self.told, self.problem = threading.Event(), [], None
        self.spoke = threading.Event()
        self.watch = LimitWatch(
            request=lambda: self.request, pid=lambda: pid, say=self._say, end=self._end, over=self.over,
            limits=usual,
        )  # fmt: skip

    def _say(self, problem):
        self.told.append(problem)
        self.spoke.set()

    def _end(self, problem):
        self.problem = problem
        self.over.set()

    def run(self):
        self.watch.start()
        assert self.over.wait(30)
        return self.problem


@contextmanager
def running(source):
    """A process of its own group, which has said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        kill_group(process.pid)
        process.communicate()


@pytest.fixture(params=[HOLDS, SHARED, CHILD], ids=["itself", "shared", "a child"])
def hungry(request):
    with running(request.param) as process:
        yield process


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux to tell what is shared")
def test_what_forked_processes_share_counts_once():
    with running(FORKS) as process:
        watched = Watched(process.pid, LimitsChoice(memory_mb=350))
        watched.watch.start()
        assert not watched.over.wait(3 * limit_watch.FAMILY_S)
        watched.over.set()
    assert watched.told == []


def test_memory_of_the_process_and_of_its_children_counts(hungry):
    watched = Watched(hungry.pid, LimitsChoice(memory_mb=150))
    watched.watch.observe(Progress(phase=Phase.CALIBRATE, detail="example 7"))
    problem = watched.run()
    assert problem.code is ErrorCode.OUT_OF_MEMORY
    assert problem.what.startswith("Calibrating: example 7: the job held 0.2 GB")
    assert "memory_mb" in problem.remedy


def test_a_job_warns_before_the_limit(hungry):
    watched = Watched(hungry.pid, LimitsChoice(memory_mb=225))
    watched.watch.start()
    assert watched.spoke.wait(30)
    watched.over.set()
    assert watched.problem is None
    (warned,) = watched.told
    assert warned.what.endswith("the job held 0.2 GB of memory, nearly as much as it may")
    assert warned.why.startswith("it may hold 0.2 GB") and "memory_mb" in warned.remedy


def test_a_step_that_reports_nothing_is_ended_where_that_was_asked_for(monkeypatch):
    first = Watched(None, LimitsChoice(step_s=0.6))
    first.watch.observe(Progress(phase=Phase.CALIBRATE, detail="of the job before"))
    first.watch.observe(JobCancelled(job="before"))
    problem = first.run()
    assert problem.code is ErrorCode.TIMEOUT and problem.what.startswith("Starting the engine: nothing")
    assert "nothing was reported" in problem.what and "step_s" in problem.remedy
    monkeypatch.setattr(limit_watch, "SILENT_S", 0.6)
    watched = Watched(None, LimitsChoice())
    watched.watch.observe(Progress(phase=Phase.LOAD, detail="net.py"))
    assert watched.run().what.startswith("Loading the model: net.py: nothing was reported")


def test_where_the_recipe_sets_no_limit_that_of_the_settings_holds():
    def usual():
        return LimitsChoice(step_s=0.6, memory_mb=1)

    assert "a step may take 1 s" in Watched(None, LimitsChoice(), usual=usual).run().why
    watched = Watched(None, LimitsChoice(step_s=60), usual=usual)
    watched.watch.start()
    assert not watched.over.wait(1.2)
    watched.over.set()
    problem = Watched(os.getpid(), LimitsChoice(step_s=60), usual=usual).run()
    assert problem.code is ErrorCode.OUT_OF_MEMORY


def test_a_job_that_follows_at_once_under_the_same_id_has_limits_of_its_own():
    watched = Watched(None, LimitsChoice(step_s=60))
    first = watched.request
    second = replace(first, recipe=replace(first.recipe, limits=LimitsChoice(step_s=0.6)))
    watched.watch._request = itertools.chain([first], itertools.repeat(second)).__next__
    assert "a step may take 1 s" in watched.run().why


def test_in_the_window_a_silent_step_is_told_and_how_to_stop_it_and_ended_later(monkeypatch):
    monkeypatch.setattr(limit_watch, "SILENT_S", 0.6)
    watched = Watched(None, LimitsChoice(), usual=LimitsChoice)
    watched.watch.observe(Progress(phase=Phase.LOAD))
    watched.watch.start()
    assert watched.spoke.wait(30) and watched.problem is None
    assert watched.told[0].what.startswith("Loading the model: nothing was reported")
    assert "Cancel (Esc)" in watched.told[0].remedy
    assert watched.over.wait(30)
    assert len(watched.told) <= limit_watch.TOLD_BEFORE - 1
    assert watched.problem.code is ErrorCode.TIMEOUT and "Loading the model" in watched.problem.what


def test_a_model_that_never_ends_is_ended_within_minutes_and_data_may_take_longer():
    assert 60 <= limit_watch.SILENT_S <= 900
    assert {Phase.LOAD, Phase.EAGER, Phase.MEASURE, Phase.EXPORT}.isdisjoint(limit_watch.LONG_STEPS)
    assert Phase.EVALUATE in limit_watch.LONG_STEPS and limit_watch.LONG_SILENT_S > limit_watch.SILENT_S


def test_progress_is_a_sign_of_life_and_a_line_of_the_log_is_none():
    watched = Watched(None, LimitsChoice(step_s=1.5))
    watched.watch.start()
    for _ in range(8):
        watched.watch.observe(Progress(phase=Phase.EAGER))
        assert not watched.over.wait(0.3)
    for _ in range(20):
        watched.watch.observe(LogLine(text="still here"))
        if watched.over.wait(0.3):
            break
    assert watched.problem is not None


@pytest.mark.parametrize(
    ("line", "folder", "limit", "use", "cached"),
    [
        ("0::/", "", "memory.max", "memory.current", "active_file"),
        ("4:memory:/job", "memory/job", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
)
def test_a_container_with_little_memory_limits_the_default(tmp_path, monkeypatch, line, folder, limit, use, cached):
    monkeypatch.setattr(limit_watch, "_CGROUP", tmp_path)
    monkeypatch.setattr(limit_watch, "_PROC", tmp_path)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text(f"5:cpu:/\n{line}\n")
    group = tmp_path / folder
    group.mkdir(parents=True, exist_ok=True)
    (group / "memory.stat").write_text(f"anon 90000000\n{cached} 20000000\n")
    whole = default_memory()
    (group / use).write_text("100000000\n")
    (group / limit).write_text("max\n")
    assert default_memory() == pytest.approx(whole, rel=0.2)
    (group / limit).write_text("500000000\n")
    assert default_memory() == pytest.approx(0.95 * 420e6)
