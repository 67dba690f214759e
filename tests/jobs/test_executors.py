"""One request at a time in a worker process: its events, leaving early, and workers that are lost."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.records.messages import FileInspected, InspectRequest, JobCancelled, JobFailed, Progress, WorkerLost

pytestmark = pytest.mark.usefixtures("fake_engine")


@pytest.fixture
def client() -> WorkerClient:
    return WorkerClient()


@pytest.fixture
def executor(client: WorkerClient) -> Iterator[WorkerExecutor]:
    with WorkerExecutor(client) as made:
        yield made


def ask(what: str, job: str = "job") -> InspectRequest:
    return InspectRequest(job=job, path=what)


def test_events_come_in_order_and_end_with_the_answer(executor: WorkerExecutor) -> None:
    for number in range(2):
        events = [event for event in executor.run(ask(f"echo {number}")) if event.job]
        assert [type(event) for event in events] == [Progress, FileInspected]


@pytest.mark.parametrize("what", ["fail", "divide", "exit_politely 3"])
def test_a_failure_is_the_last_event(executor: WorkerExecutor, what: str) -> None:
    assert isinstance(list(executor.run(ask(what)))[-1], JobFailed)


def test_leaving_early_cancels_the_job_and_the_next_one_runs(executor: WorkerExecutor) -> None:
    events = executor.run(ask("listen", job="first"))
    while not isinstance(next(events), Progress):
        pass
    begin_s = time.monotonic()
    events.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begin_s < 1.0
    assert isinstance(list(executor.run(ask("echo x", job="second")))[-1], FileInspected)


def test_cancelling_while_events_are_read_ends_them(executor: WorkerExecutor, client: WorkerClient) -> None:
    last = None
    for event in executor.run(ask("listen")):
        last = event
        if isinstance(event, Progress):
            client.cancel("job")
    assert isinstance(last, JobCancelled)
    assert isinstance(list(executor.run(ask("echo x", job="next")))[-1], FileInspected)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_worker_lost_between_two_requests_is_replaced() -> None:
    client = WorkerClient()
    with WorkerExecutor(client) as executor:
        list(executor.run(ask("echo 1")))
        os.kill(client.pid or 0, signal.SIGKILL)
        deadline_s = time.monotonic() + 5
        while client.is_running and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert isinstance(list(executor.run(ask("echo 2")))[-1], FileInspected)


def test_a_worker_lost_in_a_request_ends_it() -> None:
    with WorkerExecutor(WorkerClient()) as executor:
        assert isinstance(list(executor.run(ask("leave 0")))[-1], WorkerLost)
        assert isinstance(list(executor.run(ask("echo x")))[-1], FileInspected)
