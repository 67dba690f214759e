"""The SSH server that the tests of this folder share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ace_studio.jobs.answer import HANDLERS_VARIABLE
from ace_studio.jobs.engines import EngineClient
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from tests.jobs.hosts.linking import HANDLERS
from tests.jobs.hosts.ssh_host import SshHost, ssh_host


@pytest.fixture(scope="session")
def shared_host(tmp_path_factory) -> Iterator[SshHost]:
    with ssh_host(tmp_path_factory.mktemp("ssh")) as host:
        yield host


@pytest.fixture
def host(shared_host, monkeypatch) -> SshHost:
    monkeypatch.setenv(SSH_VARIABLE, shared_host.command)
    return shared_host


@pytest.fixture
def client(host, monkeypatch) -> Iterator[EngineClient]:
    monkeypatch.setenv(HANDLERS_VARIABLE, HANDLERS)
    made = EngineClient(is_lazy=True)
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    (made / "model.py").write_text(f"# {tmp_path}\ndef make(): ...")
    (made / "data.txt").write_text("the data")
    return made
