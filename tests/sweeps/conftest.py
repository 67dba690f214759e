"""A cluster in processes of its own, and the SSH server of the tests of hosts."""

from collections.abc import Iterator

import pytest

from tests.jobs.hosts.conftest import host, shared_host  # noqa: F401 - fixtures
from tests.sweeps.dask_cluster import Cluster


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.end()
