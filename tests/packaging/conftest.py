"""The scripts that build installers, for their tests."""

import importlib
import sys

import pytest


@pytest.fixture(scope="module")
def scripts(root):
    """The scripts of packaging/installers, by name."""
    folder = str(root / "packaging" / "installers")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)
