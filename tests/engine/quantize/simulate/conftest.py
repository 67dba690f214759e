"""Captured models for the tests of this folder."""

import pytest


@pytest.fixture(params=["mlp", "conv1d", "conv2d"])
def program(request):
    return request.getfixturevalue(request.param)
