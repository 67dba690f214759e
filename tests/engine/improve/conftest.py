"""Captured models for the tests of this folder."""

import pytest

from tests.engine.improve.models import Block, Convs, captured_of


@pytest.fixture(scope="session")
def convs():
    return captured_of(Convs, 3, 12, 12)


@pytest.fixture(scope="session")
def block():
    return captured_of(Block, 32)
