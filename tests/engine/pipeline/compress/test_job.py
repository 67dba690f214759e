"""Nothing that a job has started computes while it measures."""

from contextlib import contextmanager
from types import SimpleNamespace

from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.progress import Reporter


def test_alone_waits_for_the_verifying_process_and_pauses_those_that_build():
    events = []

    @contextmanager
    def paused():
        events.append("paused")
        yield
        events.append("resumed")

    verifier = SimpleNamespace(wait=lambda _: events.append("ready"))
    job = SimpleNamespace(verifier=verifier, builders=SimpleNamespace(paused=paused), reporter=Reporter())
    with CompressionJob.alone(job):
        events.append("measured")
    assert events == ["ready", "paused", "measured", "resumed"]


def test_a_job_without_other_processes_is_alone_already():
    with CompressionJob.alone(SimpleNamespace(verifier=None, builders=None, reporter=Reporter())):
        pass
