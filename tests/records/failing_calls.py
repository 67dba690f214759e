"""Makes a call to the system fail as on a full disk, for the tests of what writes files."""

import os
from collections.abc import Iterable

import pytest


def fail_call(patch: pytest.MonkeyPatch, names: Iterable[str], failing: int) -> list[int]:
    """Count the calls of these functions of `os`, and make the ``failing``-th raise; 0 makes none fail.

    Returns: the counter, which goes on counting.
    """
    seen = [0]
    for name in names:
        original = getattr(os, name)

        def call(*args, _original=original, **kwargs):
            seen[0] += 1
            if seen[0] == failing:
                raise OSError(28, "No space left on device")
            return _original(*args, **kwargs)

        patch.setattr(os, name, call)
    return seen
