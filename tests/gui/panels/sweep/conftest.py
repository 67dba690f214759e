"""The example with a sweep whose process says what the test tells it to."""

import pytest

from tests.session.fake_sweep_link import FakeSweepLink


@pytest.fixture
def sweeping(trusted, tmp_path):
    """The example is open and trusted, and a sweep of it writes into an empty folder."""
    trusted.link = FakeSweepLink()
    trusted.session.sweep._link = trusted.link
    trusted.session.sweep.set_place(out=str(tmp_path / "out"))
    trusted.sweep = trusted.panel("sweep")
    return trusted
