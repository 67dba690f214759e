"""Store the pictures of the window anew: ``python -m tests.gui.renew_screens``. Needs no display and no engine."""

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).with_name("test_screens.py")

if __name__ == "__main__":
    os.environ["ACE_RENEW_SCREENS"] = "1"
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "looks_as_stored", str(TESTS)]))
