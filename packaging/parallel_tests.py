"""Chooses the number of processes for the tests. Standard library only, because ``bootstrap.py`` imports it."""

from __future__ import annotations

import os
from collections.abc import Sequence

MOST_PROCESSES = 8
"""Upper limit; more processes wait for the disk and the memory."""
GIB_OF_EACH = 3.0
"""Memory for one process of tests and the programs that its tests start."""
_ONE_PROCESS = ("--pdb", "--trace", "-s", "--capture=no", "-n", "--numprocesses", "--dist", "no:xdist")


def usable_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_gib() -> float:
    """Memory of this machine in GiB; 1024 if the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (AttributeError, ValueError, OSError):
        return 1024.0


def xdist_options(words: Sequence[str] = ()) -> tuple[str, ...]:
    """Options of pytest that spread the tests over the cores; empty for one process.

    Args:
        words: The user's arguments for pytest. One process is used if they name a single file, choose the number of
            processes, or need the terminal.
    """
    is_one_file = sum(word.partition("::")[0].endswith(".py") for word in words) == 1
    if is_one_file or any(word.startswith(_ONE_PROCESS) for word in words):
        return ()
    # Three for two cores, because tests also wait: for processes, for windows and for each other.
    processes = min(usable_cores() * 3 // 2, MOST_PROCESSES, int(memory_gib() / GIB_OF_EACH))
    # worksteal: each process starts with its own share, in order, and then takes from the others.
    return ("-n", str(processes), "--dist", "worksteal") if processes > 1 else ()
