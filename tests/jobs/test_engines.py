"""A request goes to the engine that it names, and only that one is started."""

import pytest

from ace_studio.jobs import engines
from ace_studio.jobs.engines import EngineClient
from ace_studio.records.messages import DoctorRequest, FileInspected, InspectRequest, JobFinished, LogLine, TraceRequest
from ace_studio.records.recipes.recipe import EngineChoice, LimitsChoice, ModelChoice, Recipe

BOX = EngineChoice(host="box")


class Link:
    """Notes what it is given; over after the first request."""

    made: list = []  # noqa: RUF012 - shared on purpose

    def __init__(self, engine, put):
        self.engine, self.put, self.sent, self.calls = engine, put, [], []
        Link.made.append(self)

    def send(self, request, **options):
        if self.sent:
            return False
        self.sent.append((request, options))
        return True

    def has(self, job):
        return any(one.job == job for one, _ in self.sent)

    def cancel(self, job, grace_s):
        self.calls.append((job, grace_s))

    def close(self):
        self.calls.append("closed")


@pytest.fixture
def client(monkeypatch, fake_engine):
    Link.made = []
    monkeypatch.setattr(engines, "HostLink", Link)
    made = EngineClient(is_lazy=True, limits=lambda: LimitsChoice(memory_mb=5.0), contain=lambda: None)
    made.start()
    yield made
    made.close()


def test_a_host_gets_its_requests_with_what_holds_here(client):
    request = TraceRequest(job="a", recipe=Recipe(engine=BOX), folder="/")
    client.send(request)
    client.send(DoctorRequest(job="b", engine=BOX))  # the first link is over: another one is made
    first, second = Link.made
    assert first.engine == BOX and first.sent[0][0] is request
    assert first.sent[0][1] == {"contain": None, "is_strange": False, "limits": LimitsChoice(memory_mb=5.0)}
    client.cancel("b", grace_s=0.5)
    assert (first.calls, second.calls) == ([], [("b", 0.5)])
    second.put(LogLine(text="from there"))
    assert client.next_event(1).text == "from there"
    assert client.pid is None and client.is_running


def test_files_are_inspected_here_by_a_worker_that_starts_then(client):
    client.send(InspectRequest(job="a", path="echo x"))
    while not isinstance(event := client.next_event(20), FileInspected):
        assert event is not None
    client.send(TraceRequest(job="b", recipe=Recipe(model=ModelChoice(source="x")), folder="/"))
    while not isinstance(event := client.next_event(20), JobFinished):
        assert event is not None
    assert client.pid is not None and not Link.made


def test_to_restart_and_to_close_lets_go_of_hosts(client):
    client.send(DoctorRequest(job="a", engine=BOX))
    client.kill()
    assert Link.made[0].calls == ["closed"]
    client.send(DoctorRequest(job="a", engine=BOX))
    client.close()
    assert Link.made[1].calls == ["closed"]
