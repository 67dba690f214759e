"""Captured models for the tests of this folder."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["mlp", "conv1d", "conv2d"])
def program(request):
    return request.getfixturevalue(request.param)
