"""Whether something disturbed a measurement: other work on the cores, or a processor that changed its speed."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from ace_studio.engine.progress import Reporter

FoundT = TypeVar("FoundT")

_TASKS = Path("/proc/self/task")
MOST_CHANGE = 1.15
"""What changes less is the ripple of turbo clocks, which interleaved rounds survive."""
MOST_SHARE = 0.02
"""Of the time of a measurement that may be spent on watching it."""
LEAST_LOOKS = 6
"""With fewer, nothing is known of the speed."""
RECOVERED = 1.05
LONGEST_WAIT_S = 30.0
WAIT_PER_MEASURED = 3.0
"""A measurement waits this many times as long as it took, but never longer than `LONGEST_WAIT_S`."""
WAIT_STEP_S = 1.0

_OPERANDS = np.linspace(1.0, 2.0, 4096)  # with the results 64 kB: they stay in the caches of the core
_RESULTS = np.empty_like(_OPERANDS)


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


class SpeedWatch:
    """Follows the processor's speed through one measurement: by a reference computation."""

    def __init__(
        self, *, reference: Callable[[], float] = reference_ms, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._reference = reference
        self._clock = clock
        self._began_s, self._spent_s = clock(), 0.0
        self._times_ms: list[float] = []

    @property
    def elapsed_s(self) -> float:
        """Since it began."""
        return self._clock() - self._began_s

    def look(self) -> None:
        """Take one value, unless looking has taken too much of the measurement's time so far."""
        start = self._clock()
        usual_s = self._spent_s / max(1, len(self._times_ms))
        if self._spent_s + usual_s > MOST_SHARE * (start - self._began_s):
            return
        self._times_ms.append(self._reference())
        self._spent_s += self._clock() - start

    def change(self) -> str:
        """How the speed changed between beginning and end, in words; empty if it did not, or if too little is known."""
        first, last = _ends(self._times_ms) or (1.0, 1.0)
        if max(last / first, first / last) <= MOST_CHANGE:
            return ""
        verb = "slowed down" if last > first else "became faster"
        times = f"a reference computation took {first:.3g} ms, then {last:.3g} ms"
        return f"the processor {verb} while measuring ({times})"

    def is_as_fast_as_at_first(self) -> bool:
        """Whether it is now as fast as when the measurement began."""
        times = _ends(self._times_ms)
        return times is None or self._reference() <= RECOVERED * times[0]


def measure_steadily(
    measured: Callable[[SpeedWatch], FoundT],
    reporter: Reporter,
    *,
    new_watch: Callable[[], SpeedWatch] = SpeedWatch,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[FoundT, str]:
    """Measure; if the processor's speed changed meanwhile, wait until it is back, and measure once more.

    Args:
        measured: Measures, and calls `SpeedWatch.look` between the rounds.
        reporter: Is told of the wait; may cancel it.
        new_watch: Makes the watch of each measurement.
        pause: Waits for so many seconds.

    Returns: What was measured last, and why it does not say what is faster; empty if it does.
    """
    watch = new_watch()
    found = measured(watch)
    if not (change := watch.change()):
        return found, ""
    longest_s = min(LONGEST_WAIT_S, WAIT_PER_MEASURED * watch.elapsed_s)
    waited_s = 0.0
    while waited_s < longest_s and not watch.is_as_fast_as_at_first():
        reporter.advance(None, f"{change}: waiting for it, {waited_s:.0f} of at most {longest_s:.0f} s")
        step_s = min(WAIT_STEP_S, longest_s - waited_s)
        pause(step_s)
        waited_s += step_s
    reporter.advance(None, f"{change}: measuring again")
    watch = new_watch()
    return measured(watch), watch.change()


def _ends(values: Sequence[float]) -> tuple[float, float] | None:
    """Medians of the first and of the last quarter; None if there are too few."""
    if len(values) < LEAST_LOOKS:
        return None
    count = max(LEAST_LOOKS // 2, len(values) // 4)
    return statistics.median(values[:count]), statistics.median(values[-count:])
