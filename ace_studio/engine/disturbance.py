"""Whether something disturbs a measurement: other work on the cores, or a processor that changes its speed."""

import os
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

_OPERANDS = np.linspace(1.0, 2.0, 4096)  # with the results 64 kB: they stay in the caches of the core
_RESULTS = np.empty_like(_OPERANDS)
_TASKS = Path("/proc/self/task")


def waited_s() -> float:
    """Seconds that the threads of this process have waited for a core so far; on a Mac, that none of them computed.

    Windows counts in steps that are longer than a round: there it is 0.
    Source: run_delay of /proc/PID/task/TID/schedstat (documentation of Linux, sched-stats).
    """
    ran = waited = 0
    for path in _TASKS.glob("*/schedstat"):
        with suppress(OSError):  # a thread may end meanwhile
            on_core, in_queue, _ = map(int, path.read_text(encoding="ascii").split())
            ran, waited = ran + on_core, waited + in_queue
    if ran or os.name == "nt":
        return waited / 1e9
    return time.perf_counter() - time.process_time()


def reference_ms() -> float:
    """Milliseconds of 81,920 square roots in one thread: the best of three, which no other program interrupted."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter_ns()
        for _ in range(20):
            np.sqrt(_OPERANDS, out=_RESULTS)
        best = min(best, (time.perf_counter_ns() - start) / 1e6)
    return best
