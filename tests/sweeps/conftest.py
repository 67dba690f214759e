"""A cluster in processes of its own, and the SSH server of the tests of hosts."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ace_studio.jobs.answer import HANDLERS_VARIABLE
from tests.jobs.hosts.conftest import host, shared_host  # noqa: F401 - fixtures
from tests.sweeps.dask_cluster import Cluster

# A client whose cluster was killed logs in a thread of its own, also when its test has ended. Formatting a traceback
# there makes syntax trees, and Python 3.11 fails if a test makes one at the same time (gh-106905).
logging.getLogger("distributed").setLevel(logging.CRITICAL)


@pytest.fixture
def fake_jobs(monkeypatch) -> None:
    """Engines that are started in a test, also by the workers of a cluster, have the handlers of `fake_jobs`."""
    monkeypatch.setenv(HANDLERS_VARIABLE, str(Path(__file__).with_name("fake_jobs.py")))


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.end()
