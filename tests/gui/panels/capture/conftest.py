"""Tests of panels/capture/conftest.py."""

import pytest

from tests.gui.capturing import report
from tests.gui.graph_tables import layered_table


@pytest.fixture
def capture_panel(trusted):
    trusted.capture(layered_table(3), report())
    return trusted.panel("capture")
