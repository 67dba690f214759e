"""Modules made by the tests of this folder are forgotten."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _modules_forgotten():
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("net_"):
            del sys.modules[name]
