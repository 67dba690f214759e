import psutil
import pytest

from ace_studio.jobs.cores import BYTES_PER_JOB, bytes_of_job, workers_here


class FakeProcess:
    def cpu_affinity(self):
        return [0, 1, 2, 3, 6]


@pytest.fixture
def memory(monkeypatch):
    monkeypatch.setattr(psutil, "Process", FakeProcess)

    def available(jobs):
        amount = type("Memory", (), {"available": jobs * BYTES_PER_JOB})
        monkeypatch.setattr(psutil, "virtual_memory", lambda: amount)

    available(100)
    return available


def test_each_worker_has_cores_of_its_own_for_the_threads_of_its_jobs(memory):
    assert workers_here([1, 1]) == [[0], [1], [2], [3], [6]]
    assert workers_here([1, 2]) == [[0, 1], [2, 3]]
    assert workers_here([1, "all"]) == workers_here(["best"]) == [[0, 1, 2, 3, 6]]
    assert workers_here([64]) == [[0, 1, 2, 3, 6]]


def test_memory_limits_the_workers_and_one_is_always_there(memory):
    memory(2)
    assert workers_here([1]) == [[0, 1], [2, 3]]
    assert workers_here([1], bytes_per_job=2 * BYTES_PER_JOB) == [[0, 1, 2, 3, 6]]
    memory(0)
    assert workers_here([1]) == [[0, 1, 2, 3, 6]]


def test_a_model_that_ran_has_its_own_estimate():
    assert bytes_of_job(None) == BYTES_PER_JOB
    assert bytes_of_job(10_000_000) < BYTES_PER_JOB < bytes_of_job(10_000_000_000)
    assert bytes_of_job(10_000_000_000) > 10_000_000_000
