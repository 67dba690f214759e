"""How many jobs this machine runs at once, each on cores of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence

import psutil

BYTES_PER_JOB = 3_000_000_000
"""Estimate of what one job of a small model takes at most: torch, the runtimes, and the processes that verify."""


def workers_here(threads: Sequence[int | str]) -> list[list[int]]:
    """The cores of each worker of a local cluster: as many as the jobs' threads, each core once, as memory allows."""
    process = psutil.Process()
    cores = process.cpu_affinity() if hasattr(process, "cpu_affinity") else list(range(os.cpu_count() or 1))
    each = len(cores) if "all" in threads else min(max((int(one) for one in threads), default=1), len(cores))
    count = max(1, min(len(cores) // each, psutil.virtual_memory().available // BYTES_PER_JOB))
    share = len(cores) // count
    return [cores[at * share : (at + 1) * share] for at in range(count)]
