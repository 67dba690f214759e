"""Rungs that hang in native code or take the process with them, and the job that goes on without them."""

import os
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
from msgspec.structs import replace

from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.jobs.rescue import AttemptWatch, user_line
from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import CaptureChoice, LimitsChoice, ModelChoice, Recipe, TargetsChoice
from ace_studio.records.results import AttemptStatus, CaptureAttempt

pytestmark = pytest.mark.usefixtures("fake_engine")
DIED = Problem(code=ErrorCode.CRASH, what="The engine process crashed (SIGSEGV)", why="the test says so")
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture
def client() -> Iterator[WorkerClient]:
    with WorkerClient(attempt_grace_s=0.3) as made:
        yield made


def climb(
    *rungs: str, kind: type[messages.TraceRequest] = messages.TraceRequest, limit_s: float = 30.0, **more: object
) -> messages.TraceRequest:
    recipe = Recipe(model=ModelChoice(entry="climb"), capture=CaptureChoice(rungs=rungs, time_limit_s=limit_s))
    return kind(job="job", recipe=recipe, folder="/", **more)  # type: ignore[arg-type]


def events_of(client: WorkerClient, request: messages.TraceRequest) -> list[messages.AnyEvent]:
    return list(WorkerExecutor(client).run(request))


def tried(events: list[messages.AnyEvent]) -> dict[str, CaptureAttempt]:
    return {event.outcome.name: event.outcome for event in events if isinstance(event, messages.AttemptEnded)}


@posix
def test_a_rung_that_hangs_with_the_interpreter_lock_is_ended_and_the_next_runs_in_a_new_process(
    client: WorkerClient,
) -> None:
    first = client.pid
    begin_s = time.monotonic()
    events = events_of(client, climb("echo before", "hold_lock", "echo after", limit_s=0.3))
    assert time.monotonic() - begin_s < 15
    found = tried(events)
    assert [found[name].status for name in ("echo before", "hold_lock", "echo after")] == ["ok", "timeout", "ok"]
    problem = found["hold_lock"].error
    assert problem is not None and problem.code is ErrorCode.TIMEOUT
    assert "fake_engine.py" in problem.where  # the dying interpreter said where it hung
    assert isinstance(events[-1], messages.JobFinished)
    assert client.pid != first and not psutil.pid_exists(first or 0)


@posix
@pytest.mark.parametrize(("rung", "words"), [("crash", "SIGSEGV"), ("leave 7", "os._exit(7)")])
def test_a_rung_that_ends_the_process_is_noted_as_crashed_and_the_next_wins(
    client: WorkerClient, rung: str, words: str
) -> None:
    events = events_of(client, climb(rung, "echo after"))
    found = tried(events)
    assert found[rung].status is AttemptStatus.CRASHED
    problem = found[rung].error
    assert problem is not None and words in problem.what and problem.remedy
    assert found["echo after"].status is AttemptStatus.OK
    assert isinstance(events[-1], messages.JobFinished)
    assert sum(isinstance(event, messages.WorkerReady) for event in events) >= 1


@posix
def test_a_rung_that_goes_over_the_memory_limit_is_ended_and_the_next_wins(client: WorkerClient) -> None:
    asked = climb("eat", "echo after")
    recipe = replace(asked.recipe, limits=LimitsChoice(memory_mb=300))
    events = events_of(client, replace(asked, recipe=recipe))
    found = tried(events)
    problem = found["eat"].error
    assert problem is not None and problem.code is ErrorCode.OUT_OF_MEMORY
    assert "the job held 0." in problem.what and "GB of memory" in problem.what  # more than 0.3 on a busy machine
    assert "fake_engine.py" in problem.where
    assert found["echo after"].status is AttemptStatus.OK
    assert isinstance(events[-1], messages.JobFinished)


def test_after_a_rung_that_was_interrupted_the_next_one_runs_in_a_new_process(client: WorkerClient) -> None:
    events = events_of(client, climb("echo before", "give_up", "echo after"))
    pids = [event.pid for event in events if isinstance(event, messages.WorkerReady)]
    assert len(set(pids)) == 2
    assert [one.status for one in tried(events).values()] == ["ok", "timeout", "ok"]
    assert isinstance(events[-1], messages.JobFinished)


def test_when_the_last_rung_was_interrupted_the_process_stays(client: WorkerClient) -> None:
    events = events_of(client, climb("echo before", "give_up"))
    assert sum(isinstance(event, messages.WorkerReady) for event in events) == 1
    assert isinstance(events[-1], messages.JobFinished)


@posix
def test_several_rungs_may_die_one_after_the_other_in_a_run_as_well(client: WorkerClient) -> None:
    events = events_of(client, climb("leave 1", "leave 2", "echo after", kind=messages.RunRequest, output="/nowhere"))
    assert [one.status for one in tried(events).values()] == ["crashed", "crashed", "ok"]
    assert isinstance(events[-1], messages.JobFinished)


def test_what_waits_behind_the_job_that_died_is_served_too(client: WorkerClient) -> None:
    client.send(climb("leave 1", "echo x"))
    client.send(messages.InspectRequest(job="next", path="echo served"))
    ends: list[str] = []
    while len(ends) < 2:
        event = client.next_event(20)
        assert event is not None and not isinstance(event, messages.WorkerLost), event
        if type(event).__name__ in ("JobFinished", "FileInspected"):
            ends.append(event.job)
    assert ends == ["job", "next"]


def test_a_crash_outside_a_rung_is_a_loss_as_ever(client: WorkerClient) -> None:
    request = messages.TraceRequest(job="job", recipe=Recipe(model=ModelChoice(entry="crash")), folder="/")
    assert isinstance(events_of(client, request)[-1], messages.WorkerLost)


def until(client: WorkerClient, is_wanted: Callable[[messages.AnyEvent], bool]) -> list[messages.AnyEvent]:
    """The events up to the one that is wanted."""
    events: list[messages.AnyEvent] = []
    for _ in range(1000):
        event = client.next_event(20)
        assert event is not None, events
        events.append(event)
        if is_wanted(event):
            return events
    raise AssertionError(events)


def test_a_rung_that_was_cancelled_and_had_to_be_killed_is_not_tried_again(client: WorkerClient) -> None:
    client.send(climb("stubborn", "echo after"))
    until(client, lambda event: isinstance(event, messages.Progress) and event.detail == "stubborn")
    client.cancel("job", grace_s=0.3)
    events = until(client, lambda event: isinstance(event, messages.WorkerLost))
    assert not any(isinstance(event, messages.AttemptEnded) for event in events)
    assert isinstance(events[-1], messages.WorkerLost) and events[-1].problem.code is ErrorCode.CANCELLED
    assert not client.is_running


def test_closing_the_client_while_a_rung_runs_starts_nothing_new(client: WorkerClient) -> None:
    client.send(climb("sleep", "echo after"))
    until(client, lambda event: isinstance(event, messages.AttemptStarted))
    pid = client.pid
    client.close()
    assert client.pid == pid and not client.is_running


# --- the bookkeeping, without a process ---


def watch(overrun: Callable[[], None] = lambda: None, grace_s: float = 0.0) -> AttemptWatch:
    return AttemptWatch(grace_s=grace_s, overrun=overrun)


def test_the_repeated_request_knows_how_every_rung_ended() -> None:
    following = watch()
    earlier = CaptureAttempt(name="export", status=AttemptStatus.CRASHED)
    failed = CaptureAttempt(name="export-strict", status=AttemptStatus.FAILED)
    following.observe(messages.AttemptEnded(outcome=failed), None)
    following.observe(messages.AttemptStarted(name="dynamo"), None)
    rescue = following.rescue(climb("export", rungs_done=(earlier,)), DIED)
    assert rescue is not None
    assert [one.name for one in rescue.request.rungs_done] == ["export", "export-strict", "dynamo"]
    assert rescue.outcome.status is AttemptStatus.CRASHED


def test_between_two_rungs_nothing_is_rescued_and_a_fix_is_not_repeated() -> None:
    following = watch()
    following.observe(messages.AttemptStarted(name="export", limit_s=60), None)
    assert following.rescue(climb("export", kind=messages.FixRequest), DIED) is None
    following.observe(messages.AttemptEnded(outcome=CaptureAttempt(name="export", status=AttemptStatus.FAILED)), None)
    assert following.rescue(climb("export"), DIED) is None
    following.reset()


def test_a_rung_that_reports_in_time_is_never_called_hung() -> None:
    calls: list[str] = []
    following = watch(lambda: calls.append("hung"), grace_s=0.1)
    for limit_s in (0.05, None):
        following.observe(messages.AttemptStarted(name="export", limit_s=limit_s), None)
    time.sleep(0.3)
    assert not calls


def test_the_place_of_a_crash_is_the_users_innermost_line() -> None:
    details = """File "/earlier/print.py", line 1, in unrelated
Fatal Python error: Segmentation fault

Current thread 0x1 (most recent call first):
  File "/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 9 in _call_impl
  File "/env/lib/python3.11/ctypes/__init__.py", line 5 in string_at
  File "/home/me/model.py", line 41 in forward
  File "/env/lib/python3.11/site-packages/ace_studio/engine/x.py", line 3 in capture"""
    assert user_line(details) == "/home/me/model.py:41"
    assert user_line("it printed nothing of the kind") == ""


def run_of(*targets: str) -> messages.RunRequest:
    recipe = Recipe(model=ModelChoice(entry="build"), targets=TargetsChoice(names=targets))
    return messages.RunRequest(job="job", recipe=recipe, folder="/", output="/")


@posix
def test_a_target_that_crashes_is_left_out_and_the_run_goes_on_in_a_new_process(client: WorkerClient) -> None:
    events = events_of(client, run_of("onnxruntime", "openvino", "eager"))
    assert isinstance(events[-1], messages.JobFinished), events[-1]
    found = {event.run.target: event.run for event in events if isinstance(event, messages.TargetFinished)}
    assert [run.status for run in found.values()] == ["ok", "failed", "ok"]
    problem = found["openvino"].error
    assert problem is not None and problem.code is ErrorCode.CRASH
    assert "OpenVINO ended the engine process: the engine process crashed (SIGSEGV)" in problem.what
    assert "string_at" in problem.details
    at = next(
        at for at, one in enumerate(events) if isinstance(one, messages.Progress) and "without openvino" in one.detail
    )
    assert isinstance(events[at - 1], messages.TargetAtWork) and not events[at - 1].target


@posix
def test_a_crash_in_the_users_code_under_a_target_is_not_the_targets(client: WorkerClient) -> None:
    lost = events_of(client, run_of("inductor", "eager"))[-1]
    assert isinstance(lost, messages.WorkerLost) and "SIGSEGV" in lost.problem.what
    assert "fake_engine.py" in lost.problem.where


@pytest.mark.parametrize(
    ("problem", "at_work", "goes_on"),
    [
        (replace(DIED, details="Fatal Python error: Segmentation fault\n"), "openvino", True),
        (replace(DIED, details="Fatal Python error: Segmentation fault\n"), "", False),
        (DIED, "openvino", False),  # killed from outside: there is no stack
        (replace(DIED, code=ErrorCode.OUT_OF_MEMORY, details="Fatal Python error: Aborted\n"), "openvino", False),
    ],
)
def test_only_a_crash_of_native_code_is_laid_to_the_target_at_work(
    problem: Problem, at_work: str, goes_on: bool
) -> None:
    watch = AttemptWatch(grace_s=1.0, overrun=lambda: None)
    request = run_of("openvino")
    watch.observe(messages.TargetAtWork(job="job", target="onnxruntime"), request)
    watch.observe(messages.TargetAtWork(job="job", target=at_work), request)
    rescue = watch.rescue(request, problem)
    assert (rescue is not None) == goes_on
    if rescue is not None:
        assert isinstance(rescue.request, messages.RunRequest) and list(rescue.request.targets_lost) == [at_work]
    assert watch.rescue(climb("export"), problem) is None  # a trace builds nothing


def test_the_line_of_a_crash_is_that_of_the_thread_that_failed() -> None:
    details = """Fatal Python error: Segmentation fault

Thread 0x00007f82b886b6c0 (most recent call first):
  File "/env/lib/python3.11/site-packages/tqdm/_monitor.py", line 69 in run

Current thread 0x00007f82df061b80 (most recent call first):
  File "/env/lib/python3.11/site-packages/openvino/_ov_api.py", line 599 in read_model

Thread 0x00007f82b886b6c0 (most recent call first):
  File "/home/me/model.py", line 41 in forward"""
    assert user_line(details) == ""


def test_code_that_torchs_compiler_wrote_is_not_the_users() -> None:
    details = """Fatal Python error: Floating point exception

Current thread 0x00007f82df061b80 (most recent call first):
  File "/env/lib/python3.11/site-packages/torch/_ops.py", line 875 in __call__
  File "/tmp/torchinductor_me/od/codnpox2.py", line 521 in call"""
    assert user_line(details) == ""
