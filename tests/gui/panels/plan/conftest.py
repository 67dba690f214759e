"""Tests of panels/plan/conftest.py."""

import pytest

from ace_studio.records.recipes.plan import Precision


@pytest.fixture
def int8_plan(desk):
    desk.traced()
    desk.session.jobs.request_environment()
    desk.session.plan.set_default_precision(Precision.INT8_STATIC)
    return desk.panel("plan")
