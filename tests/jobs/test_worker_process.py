"""One worker process, from its start to its end, with a fake engine."""

import queue

import pytest

from ace_studio.jobs.launch import LaunchOptions
from ace_studio.jobs.worker_process import KILLED, WorkerProcess
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import AnyEvent, FileInspected, InspectRequest, WorkerReady

pytestmark = pytest.mark.usefixtures("fake_engine")


class Owner:
    """Keeps events and the end of a worker, as the client does."""

    def __init__(self, **options: str) -> None:
        self.events: queue.Queue[AnyEvent] = queue.Queue()
        self.ends: list[tuple[Problem, tuple[list[InspectRequest], bool]]] = []
        launch = LaunchOptions(**options)
        self.worker = WorkerProcess(launch, self.events.put, ended=self.ended, attempt_grace_s=5.0)

    def ended(self, worker: WorkerProcess, problem: Problem) -> None:
        self.ends.append((problem, worker.finish()))

    def take(self, kind: type[AnyEvent]) -> AnyEvent:
        while not isinstance(event := self.events.get(timeout=20), kind):
            pass
        return event

    def ask(self, what: str) -> InspectRequest:
        request = InspectRequest(job="job", path=what)
        self.worker.add_job(request)
        self.worker.send(request)
        return request


def test_a_request_before_ready_is_kept_back_and_an_idle_worker_ends_when_asked() -> None:
    owner = Owner()
    owner.ask("echo early")
    owner.take(WorkerReady)
    event = owner.take(FileInspected)
    assert event.report.path == "early"
    owner.worker.end(timeout_s=20)
    ((problem, (left, _)),) = owner.ends
    assert "exit code 0" in problem.what and not left


@pytest.mark.parametrize(
    ("is_cancelled", "is_silent", "may_go_on"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_an_unfinished_job_may_go_on_unless_somebody_wanted_the_end(is_cancelled, is_silent, may_go_on) -> None:
    owner = Owner()
    owner.take(WorkerReady)
    if is_cancelled:
        assert not owner.worker.mark_cancelled("job")
    owner.worker.is_silent = is_silent
    request = owner.ask("leave 7")
    assert owner.worker.ended.wait(20)
    assert owner.ends[0][1] == ([request], may_go_on)


def test_a_kill_keeps_its_cause_and_the_first_cause_counts() -> None:
    owner = Owner()
    first = Problem(code=ErrorCode.TIMEOUT, what="first")
    owner.worker.set_cause(first)
    owner.worker.kill(KILLED)  # perhaps before the process exists
    assert owner.worker.ended.wait(20)
    assert owner.ends[0][0] == first


def test_an_interpreter_that_does_not_exist_ends_at_once_with_its_name() -> None:
    owner = Owner(interpreter="/nonexistent/python")
    assert owner.worker.ended.wait(5)
    assert owner.worker.pid is None
    assert owner.ends[0][0].code is ErrorCode.NOT_FOUND
