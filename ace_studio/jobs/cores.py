"""How many jobs this machine runs at once, each on cores of its own."""

import os
from collections.abc import Sequence

import psutil

BYTES_PER_JOB = 3_000_000_000
"""Estimate of what a job takes whose model never ran: torch, the runtimes, and the processes that verify."""
_ENGINE_BYTES, _COPIES = 1_600_000_000, 6
"""What a job of a tiny model takes, and how many times its artifact's memory comes on top: the original, the capture,
and what is built and verified at once."""


def bytes_of_job(peak_bytes: int | None) -> int:
    """Estimate of what a job takes; ``peak_bytes``: the most that an artifact of earlier runs of its model took."""
    return BYTES_PER_JOB if peak_bytes is None else _ENGINE_BYTES + _COPIES * peak_bytes


def workers_here(threads: Sequence[int | str], *, bytes_per_job: int = BYTES_PER_JOB) -> list[list[int]]:
    """The cores of each worker of a local cluster: as many as the jobs' threads, each core once, as memory allows."""
    process = psutil.Process()
    cores = process.cpu_affinity() if hasattr(process, "cpu_affinity") else list(range(os.cpu_count() or 1))
    each = len(cores) if {"all", "best"} & set(threads) else min(max(map(int, threads), default=1), len(cores))
    count = max(1, min(len(cores) // each, psutil.virtual_memory().available // bytes_per_job))
    share = len(cores) // count
    return [cores[at * share : (at + 1) * share] for at in range(count)]
