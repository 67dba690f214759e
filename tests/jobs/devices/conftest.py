"""The SSH server of the tests of hosts, and runs with artifacts."""

import pytest

from tests.jobs.hosts.conftest import host, shared_host  # noqa: F401 - fixtures


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """What is kept on this machine as on a device."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ace-studio" / "measure-here"
