"""Tests of panels/plan/conftest.py."""

import pytest

from ace_studio.records.recipes.plan import Precision


@pytest.fixture
def int8_plan(traced):
    traced.session.jobs.request_environment()
    traced.session.plan.set_default_precision(Precision.INT8_STATIC)
    return traced.panel("plan")
