"""The peak of memory over what was held before."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ace_studio.engine.verify_child import PeakMemory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak since a moment")
LARGE_BYTES = 200_000_000


def test_the_peak_is_what_was_held_at_most_since_the_start():
    memory = PeakMemory()
    assert memory.grown_bytes() is None
    memory.start()
    held = np.ones(LARGE_BYTES // 8)
    held.sum()
    del held
    assert LARGE_BYTES * 0.9 < memory.grown_bytes() < LARGE_BYTES * 1.5


def test_what_was_needed_only_on_the_way_can_be_forgotten():
    memory = PeakMemory()
    memory.start()
    np.ones(LARGE_BYTES // 8).sum()
    memory.reset_peak()
    assert memory.grown_bytes() < LARGE_BYTES * 0.5
