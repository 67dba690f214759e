"""The example with a sweep whose process says what the test tells it to."""

import pytest

from tests.session.fake_sweep_link import FakeSweepLink


@pytest.fixture
def sweeping(desk, tmp_path):
    """The example is open and trusted, and a sweep of it writes into an empty folder."""
    desk.open_example()
    desk.session.trust.trust_file()
    desk.link = FakeSweepLink()
    desk.session.sweep._link = desk.link
    desk.session.sweep.set_place(out=str(tmp_path / "out"))
    desk.sweep = desk.panel("sweep")
    return desk
