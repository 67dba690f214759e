"""How many processes the tests run in. Standard library only; part of the set-up, imported by ``bootstrap.py``."""

from __future__ import annotations

import os
from collections.abc import Sequence

MOST_PROCESSES = 8
"""More than this wait for each other's disk and memory."""
GIB_OF_EACH = 3.0
"""Memory that one process of tests may take, with the programs that its tests start."""
_ONE_PROCESS = ("--pdb", "--trace", "-s", "--capture=no", "-n", "--numprocesses", "--dist", "no:xdist")


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_gib() -> float:
    """Memory of this machine; a lot where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (AttributeError, ValueError, OSError):
        return 1024.0


def side_by_side(words: Sequence[str] = ()) -> tuple[str, ...]:
    """Options of pytest that spread the tests over the cores.

    Args:
        words: What the user gives to pytest. None where these name a single file, choose the processes themselves, or
            want the terminal.

    Returns: The options; empty for one process.
    """
    is_one_file = sum(word.partition("::")[0].endswith(".py") for word in words) == 1
    if is_one_file or any(word.startswith(_ONE_PROCESS) for word in words):
        return ()
    processes = min(usable_cores(), MOST_PROCESSES, int(memory_gib() / GIB_OF_EACH))
    # Each begins with its own part, in order, and takes from the others when it is done.
    return ("-n", str(processes), "--dist", "worksteal") if processes > 1 else ()
