"""The child side runs requests in order and reads cancels while a job runs.

Each test has a process of its own, because a worker is interrupted by a signal.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ace_studio.jobs.channel import Channel
from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode

pytestmark = pytest.mark.skipif(os.name != "posix", reason="hands a descriptor to a process")
CHILD = """
import functools, json, sys, threading
from ace_studio.jobs import worker
from ace_studio.records.messages import Phase

config = json.loads(sys.argv[1])
begin = worker.Worker._interruptible_handler


def begin_late(self, request, reporter):
    if config["late_s"]:
        reporter.phase(Phase.START, "late")
        threading.Event().wait(config["late_s"])
    begin(self, request, reporter)


worker.Worker._interruptible_handler = begin_late
worker.Channel = functools.partial(worker.Channel, max_frame_bytes=100_000)
worker.INTERRUPT_AFTER_S = config["interrupt_after_s"]
worker.run_worker(config)
"""
Start = Callable[..., "Serving"]


class Serving:
    """A process that serves requests with the handlers of `fake_engine`, and our end of its channel."""

    def __init__(self, channel: Channel, process: subprocess.Popen[bytes]) -> None:
        self._channel, self._process = channel, process
        assert isinstance(self.receive(), messages.WorkerReady)

    def ask(self, job: str, path: str) -> None:
        self._channel.send(messages.encode_message(messages.InspectRequest(job=job, path=path)))

    def cancel(self, job: str) -> None:
        self._channel.send(messages.encode_message(messages.CancelRequest(job=job)))

    def receive(self) -> messages.AnyEvent:
        return messages.decode_event(self._channel.receive())

    def shut_down(self) -> int:
        self._channel.send(messages.encode_message(messages.ShutdownRequest(job="")))
        return self._process.wait(30)


@pytest.fixture
def start(fake_engine) -> Iterator[Start]:
    """Starts a worker whose jobs are interrupted so many seconds after a cancel, and whose handlers begin late."""
    with ExitStack() as stack:

        def serve(*, interrupt_after_s: float = 600.0, late_s: float = 0.0) -> Serving:
            ours, theirs = socket.socketpair()
            ours.settimeout(60)
            channel = Channel(ours)
            config = {"interrupt_after_s": interrupt_after_s, "late_s": late_s}
            with theirs:
                command = [sys.executable, "-c", CHILD, json.dumps({**config, "descriptor": theirs.fileno()})]
                process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            stack.callback(channel.close)
            return Serving(channel, process)

        yield serve


def test_requests_are_answered_in_order_until_the_shutdown(start: Start) -> None:
    serving = start()
    serving.ask("1", "path")
    serving.ask("2", "environment HOME")
    events = [serving.receive(), serving.receive()]
    assert [event.job for event in events if isinstance(event, messages.FileInspected)] == ["1", "2"]
    assert serving.shut_down() == 0


@pytest.mark.parametrize("command", ["repeat", "announce"])
def test_what_is_too_large_for_a_message_fails_with_a_remedy_and_the_next_job_runs(start: Start, command: str) -> None:
    serving = start()
    serving.ask("1", f"{command} 200000")
    serving.ask("2", "environment HOME")
    failed = serving.receive()
    assert isinstance(failed, messages.JobFailed)
    assert failed.problems[0].code is ErrorCode.UNSUPPORTED
    assert "too large to be shown: 0.2 MB" in failed.problems[0].what
    assert "Trace a part of the model" in failed.problems[0].remedy
    assert isinstance(serving.receive(), messages.FileInspected)


def test_a_cancel_arrives_while_the_job_runs(start: Start) -> None:
    serving = start()
    serving.ask("1", "listen")
    assert isinstance(serving.receive(), messages.Progress)
    serving.cancel("1")
    while isinstance(event := serving.receive(), messages.Progress):
        pass
    assert event == messages.JobCancelled(job="1")


def test_a_job_that_never_reports_is_interrupted(start: Start) -> None:
    serving = start(interrupt_after_s=0.05)
    serving.ask("1", "sleep")
    assert isinstance(serving.receive(), messages.Progress)
    serving.cancel("1")
    assert serving.receive() == messages.JobCancelled(job="1")
    assert serving.shut_down() == 0


def test_a_module_that_is_being_imported_is_not_left_half_done(start: Start, tmp_path: Path) -> None:
    source = "import time\ntime.sleep(0.5)\ndone = 'whole'\n"
    (tmp_path / "slow_to_import.py").write_text(source, encoding="utf-8")
    serving = start(interrupt_after_s=0.05)
    serving.ask("1", f"import_and_sleep {tmp_path}")
    assert isinstance(serving.receive(), messages.Progress)
    serving.cancel("1")
    assert serving.receive() == messages.JobCancelled(job="1")
    serving.ask("2", "imported done")
    answer = serving.receive()
    assert isinstance(answer, messages.FileInspected) and answer.report.path == "whole"


def test_a_job_whose_handler_begins_late_is_interrupted_all_the_same(start: Start) -> None:
    serving = start(interrupt_after_s=0.02, late_s=0.5)  # late by many times what the interrupt takes
    serving.ask("1", "sleep_unseen")
    assert isinstance(serving.receive(), messages.Progress)
    serving.cancel("1")
    assert serving.receive() == messages.JobCancelled(job="1")
