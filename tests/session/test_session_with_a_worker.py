"""The session and a real worker process, joined as the window joins them but without a window."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ace_studio.jobs.client import WorkerClient
from ace_studio.records.errors import ErrorCode
from ace_studio.records.messages import AnyRequest
from ace_studio.session.document import Document, EngineState, JobKind
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.session import Session

pytestmark = pytest.mark.usefixtures("fake_engine")


class Link:
    """What the window's engine thread does, on the thread of the test."""

    def __init__(self) -> None:
        self.client = WorkerClient()
        self.client.start()

    def send(self, request: AnyRequest) -> None:
        self.client.send(request)

    def cancel(self, job: str) -> None:
        self.client.cancel(job, grace_s=1.5)

    def restart(self) -> None:
        self.client.restart()


class Bench:
    def __init__(self, folder: Path) -> None:
        self.link = Link()
        self.session = Session(self.link, folders=UserFolders.inside(folder / "user"))
        self.model = folder / "model.py"
        self.model.write_text("")

    def until(self, condition: Callable[[Document], bool], within_s: float = 10.0) -> float:
        """Apply events until the document is so; returns the seconds it took."""
        begin_s = time.monotonic()
        while not condition(self.session.document):
            event = self.link.client.next_event(0.1)
            if event is not None:
                self.session.apply(event)
            assert time.monotonic() - begin_s < within_s, self.session.document.activity
        return time.monotonic() - begin_s

    def start(self, entry: str) -> None:
        """Open the model, and trace it with an entry that misbehaves so."""
        self.session.files.open_path(self.model)
        self.until(is_idle)
        self.session.choices.set_entry(entry)
        self.session.jobs.trace()
        self.until(lambda document: document.activity.detail != "" and document.activity.verb is JobKind.TRACE)


def is_idle(document: Document) -> bool:
    return document.activity.state is EngineState.IDLE


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.link.client.close()


def test_opening_right_after_the_start_waits_for_the_worker_and_is_answered(bench: Bench) -> None:
    bench.session.files.open_path(bench.model)
    assert bench.session.document.activity.state is EngineState.STARTING
    bench.until(lambda document: document.file is not None)
    assert is_idle(bench.session.document)


@pytest.mark.parametrize("entry", ["listen", "sleep", "stubborn"])
def test_cancelling_is_shown_at_once_and_over_within_5_s_whatever_the_job_does(bench: Bench, entry: str) -> None:
    bench.start(entry)
    bench.session.jobs.cancel()
    assert bench.session.document.activity.state is EngineState.CANCELLING
    assert bench.until(lambda document: document.activity.verb is JobKind.NONE) < 5.0
    bench.until(is_idle)
    assert bench.session.document.problems == ()
    bench.session.choices.set_entry("echo")
    bench.session.jobs.trace()
    bench.until(is_idle)
    assert bench.session.document.problems == ()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_worker_killed_in_a_trace_is_a_problem_within_a_second_and_the_next_trace_runs(bench: Bench) -> None:
    bench.start("sleep")
    os.kill(bench.link.client.pid or 0, signal.SIGKILL)
    assert bench.until(lambda document: document.problems != ()) < 1.0
    assert bench.session.document.problems[0].code is ErrorCode.CRASH
    bench.session.choices.set_entry("echo")
    bench.session.jobs.trace()
    bench.until(is_idle)
    # The new start is what was to be done about it.
    assert bench.session.document.problems == ()


def test_another_file_can_be_opened_while_a_stubborn_job_runs(bench: Bench, tmp_path: Path) -> None:
    bench.start("stubborn")
    other = tmp_path / "other.py"
    other.write_text("12345")
    bench.session.files.open_path(other)
    bench.until(lambda document: document.file is not None)
    assert bench.session.document.file is not None
    assert bench.session.document.file.path == str(other)
    assert bench.session.document.problems == ()
