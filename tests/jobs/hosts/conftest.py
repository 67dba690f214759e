"""The SSH server that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from tests.jobs.hosts.ssh_host import SshHost, ssh_host


@pytest.fixture(scope="session")
def shared_host(tmp_path_factory) -> Iterator[SshHost]:
    with ssh_host(tmp_path_factory.mktemp("ssh")) as host:
        yield host


@pytest.fixture
def host(shared_host, monkeypatch) -> SshHost:
    monkeypatch.setenv(SSH_VARIABLE, shared_host.command)
    return shared_host
