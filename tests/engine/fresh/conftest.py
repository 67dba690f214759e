"""Servers of one test alone."""

import pytest

from ace_studio.engine.fresh import processes


@pytest.fixture
def servers(monkeypatch):
    """No server runs before the test, and none after it."""
    own = processes._Servers()
    monkeypatch.setattr(processes, "_SERVERS", own)
    yield own
    own.end()
