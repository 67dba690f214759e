"""Tests of panels/shapes/conftest.py."""

from __future__ import annotations

import pytest


@pytest.fixture
def shapes_panel(desk):
    desk.traced()
    return desk.panel("shapes")
