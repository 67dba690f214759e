"""Tests of panels/shapes/conftest.py."""

import pytest


@pytest.fixture
def shapes_panel(traced):
    return traced.panel("shapes")
