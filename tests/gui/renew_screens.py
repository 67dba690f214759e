"""Store the pictures of the window anew: ``python -m tests.gui.renew_screens``. Needs no display and no engine."""

from __future__ import annotations

import os
import sys

import pytest

from tests.gui import test_screens

if __name__ == "__main__":
    os.environ["ACE_RENEW_SCREENS"] = "1"
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "looks_as_stored", test_screens.__file__]))
