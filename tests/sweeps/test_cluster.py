from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest
from distributed import KilledWorker

from ace_studio.sweeps import cluster as cluster_module
from ace_studio.sweeps.cluster import is_lost, local_cluster, workers_here


class FakeProcess:
    def cpu_affinity(self):
        return [0, 1, 2, 3, 6]


@pytest.fixture
def memory(monkeypatch):
    monkeypatch.setattr(psutil, "Process", FakeProcess)

    def available(jobs):
        amount = type("Memory", (), {"available": jobs * cluster_module.BYTES_PER_JOB})
        monkeypatch.setattr(psutil, "virtual_memory", lambda: amount)

    available(100)
    return available


def test_each_worker_has_cores_of_its_own_for_the_threads_of_its_jobs(memory):
    assert workers_here([1, 1]) == [[0], [1], [2], [3], [6]]
    assert workers_here([1, 2]) == [[0, 1], [2, 3]]
    assert workers_here([1, "all"]) == [[0, 1, 2, 3, 6]]
    assert workers_here([64]) == [[0, 1, 2, 3, 6]]


def test_memory_limits_the_workers_and_one_is_always_there(memory):
    memory(2)
    assert workers_here([1]) == [[0, 1], [2, 3]]
    memory(0)
    assert workers_here([1]) == [[0, 1, 2, 3, 6]]


@pytest.mark.slow
def test_a_cluster_of_this_machine_is_closed_to_others():
    with local_cluster([[0]]) as cluster:
        own = psutil.Process()
        processes = [own, *own.children(recursive=True)]
        listening = [one.laddr for each in processes for one in each.net_connections() if one.status == "LISTEN"]
        assert listening
        assert {place.ip for place in listening} == {"127.0.0.1"}
        assert cluster.scheduler_address.startswith("tls://")
        page = f"http://127.0.0.1:{cluster.scheduler.http_server.port}/api/v1/get_workers"
        with pytest.raises(HTTPError, match="404"):
            urlopen(page, timeout=5)


def test_a_job_whose_workers_died_is_lost():
    assert is_lost(KilledWorker("job", None, 2))
    assert not is_lost(ValueError())
    assert not is_lost(None)
