"""Nothing that a job has started computes while it measures."""

from contextlib import contextmanager
from types import SimpleNamespace

import torch

from ace_studio.engine.flow import Example
from ace_studio.engine.pipeline.compress.job import CompressionJob, timed_call
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets.base import Lowered


class Runtime(Lowered):
    """One that can be called alone, or not."""

    def __init__(self, alone):
        self._alone, self._call = alone, lambda tensor: ("as a module", tensor)

    def bare(self, example):
        return self._alone and (lambda: ("bare", *example.tensors()))

    def read_back(self):
        return []

    def save(self, folder):
        return folder


def test_a_runtime_is_timed_alone_where_it_can_be_and_whatever_else_as_it_is_called():
    example = Example((torch.ones(2),))
    assert timed_call(example, Runtime(True))()[0] == "bare"
    assert timed_call(example, Runtime(None))()[0] == "as a module"
    (taken,) = timed_call(example, lambda tensor: (tensor,))()
    assert taken is not example.args[0]
    assert taken.equal(example.args[0])


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
