"""The child side runs requests in order and reads cancels while a job runs."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterator

import pytest

from ace_studio.engine.progress import Reporter
from ace_studio.jobs import worker
from ace_studio.jobs.channel import Channel
from ace_studio.records.messages import (
    AnyEvent,
    AnyRequest,
    CancelRequest,
    FileInspected,
    FileReport,
    InspectRequest,
    JobCancelled,
    ShutdownRequest,
    decode_event,
    encode_message,
)


@pytest.fixture
def parent(monkeypatch) -> Iterator[tuple[Channel, Channel]]:
    """The parent's end and the worker's end; losing the channel does not end the test."""
    monkeypatch.setattr(worker, "die", lambda: None)
    before = signal.getsignal(signal.SIGINT)
    ours, theirs = (Channel(end) for end in socket.socketpair())
    yield ours, theirs
    ours.close()
    for thread in threading.enumerate():
        if thread.name == "ace-requests":
            thread.join(5)
    theirs.close()
    signal.signal(signal.SIGINT, before)


def serve(channels: tuple[Channel, Channel], handler, *requests: AnyRequest) -> list[AnyEvent]:
    ours, theirs = channels
    for request in (*requests, ShutdownRequest(job="")):
        ours.send(encode_message(request))
    worker.Worker(theirs, {InspectRequest: handler}).serve()
    jobs = [request for request in requests if not isinstance(request, CancelRequest)]
    return [decode_event(ours.receive()) for _ in jobs]


def inspect(request: InspectRequest, reporter: Reporter) -> None:
    report = FileReport(path=request.path, kind="python", label="", sha256="", size_bytes=0, trust="code")
    reporter.emit(FileInspected(report=report))


def test_requests_are_answered_in_order_until_the_shutdown(parent) -> None:
    events = serve(parent, inspect, InspectRequest(job="1", path="a"), InspectRequest(job="2", path="b"))
    assert [(event.job, event.report.path) for event in events if isinstance(event, FileInspected)] == [
        ("1", "a"),
        ("2", "b"),
    ]


def test_a_cancel_arrives_while_the_job_runs(parent) -> None:
    def wait(request: InspectRequest, reporter: Reporter) -> None:
        while True:
            reporter.check()

    (event,) = serve(parent, wait, InspectRequest(job="1", path="a"), CancelRequest(job="1"))
    assert event == JobCancelled(job="1")


def test_a_job_that_never_reports_is_interrupted(parent, monkeypatch) -> None:
    monkeypatch.setattr(worker, "INTERRUPT_AFTER_S", 0.05)

    def sleep(request: InspectRequest, reporter: Reporter) -> None:
        threading.Event().wait(20)

    (event,) = serve(parent, sleep, InspectRequest(job="1", path="a"), CancelRequest(job="1"))
    assert event == JobCancelled(job="1")


def test_a_module_that_is_being_imported_is_not_left_half_done(parent, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(worker, "INTERRUPT_AFTER_S", 0.05)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.3)\ndone = True\n", encoding="utf-8")

    def load(request: InspectRequest, reporter: Reporter) -> None:
        parent[0].send(encode_message(CancelRequest(job="1")))
        import slow_to_import  # noqa: F401 - what the test is about

        threading.Event().wait(20)

    (event,) = serve(parent, load, InspectRequest(job="1", path="a"))
    assert event == JobCancelled(job="1")
    assert sys.modules.pop("slow_to_import").done


def test_a_job_whose_handler_begins_late_is_interrupted_all_the_same(parent, monkeypatch) -> None:
    monkeypatch.setattr(worker, "INTERRUPT_AFTER_S", 0.02)
    begin = worker.Worker._interruptible_handler

    def begin_late(self, request: InspectRequest, reporter: Reporter) -> None:
        threading.Event().wait(0.3)  # several times as long as the interrupt takes
        begin(self, request, reporter)

    def sleep(request: InspectRequest, reporter: Reporter) -> None:
        threading.Event().wait(20)

    monkeypatch.setattr(worker.Worker, "_interruptible_handler", begin_late)
    # Cancelled from another thread, so that the check before the handler has passed.
    cancel = threading.Timer(0.1, lambda: parent[0].send(encode_message(CancelRequest(job="1"))))
    parent[0].send(encode_message(InspectRequest(job="1", path="a")))
    cancel.start()
    stop = threading.Timer(3, lambda: parent[0].send(encode_message(ShutdownRequest(job=""))))
    stop.start()
    worker.Worker(parent[1], {InspectRequest: sleep}).serve()
    assert decode_event(parent[0].receive()) == JobCancelled(job="1")
