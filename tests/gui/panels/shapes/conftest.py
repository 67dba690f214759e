"""Tests of panels/shapes/conftest.py."""

import pytest


@pytest.fixture
def shapes_panel(desk):
    desk.traced()
    return desk.panel("shapes")
