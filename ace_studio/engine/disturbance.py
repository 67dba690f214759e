"""Whether something disturbed a measurement: other work on the cores, or a processor that changed its speed."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from ace_studio.engine.measure import Samples
from ace_studio.engine.progress import Reporter

FoundT = TypeVar("FoundT")

CONTENTION_CPU_SHARE = 0.85
DISTURBED_PERCENT = 20
"""Percent of the samples that must have got less than that share."""
MOST_CHANGE = 1.15
"""What changes less is the ripple of turbo clocks, which the ratios of single rounds survive."""
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


def contention(samples: Sequence[Samples], *, threads: int) -> str:
    """A sentence that says that the machine was busy during the measurement; empty if it was not.

    A computation in one thread gets as much CPU time as wall time; clearly less means that other work had the core.
    Samples are shorter than the system's turns, so work beside them shows in some of them only, and one is no sign.
    With more threads the share of the whole pool is no measure, so only one thread's worth is required.
    """
    shares = [cpu / wall for one in samples for cpu, wall in zip(one.cpu_ms, one.wall_ms, strict=True) if wall > 0]
    share = float(np.percentile(shares, DISTURBED_PERCENT)) if shares else 1.0
    if share >= CONTENTION_CPU_SHARE:
        return ""
    return (
        f"the process got only {share:.0%} of one core's time in the disturbed rounds, with {threads} thread(s): "
        "other work was running, and small differences mean nothing"
    )


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
    """Follows the processor's speed through one measurement: by a reference computation, and by what Linux tells."""

    def __init__(
        self,
        *,
        reference: Callable[[], float] = reference_ms,
        processors: Path = Path("/sys/devices/system/cpu"),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._reference = reference
        self._clock = clock
        self._files = [file for file in sorted(processors.glob("cpu*/cpufreq/scaling_cur_freq")) if _is_ours(file)]
        self._began_s, self._spent_s = clock(), 0.0
        self._times_ms: list[float] = []
        self._frequencies: list[float] = []

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
        if (frequency := self._frequency()) is not None:
            self._frequencies.append(frequency)
        self._spent_s += self._clock() - start

    def change(self) -> str:
        """How the speed changed between beginning and end, in words; empty if it did not, or if too little is known."""
        changes = []
        if ends := _ends(self._times_ms):
            changes.append((ends[1] / ends[0], f"a reference computation took {ends[0]:.3g} ms, then {ends[1]:.3g} ms"))
        if ends := _ends(self._frequencies):
            changes.append((ends[0] / ends[1], f"the system tells {ends[0]:,.0f} MHz, then {ends[1]:,.0f} MHz"))
        slower, words = max(changes, key=lambda one: max(one[0], 1 / one[0]), default=(1.0, ""))
        if max(slower, 1 / slower) <= MOST_CHANGE:
            return ""
        verb = "slowed down" if slower > 1 else "became faster"
        return f"the processor {verb} while measuring ({words})"

    def is_as_fast_as_at_first(self) -> bool:
        """Whether it is now as fast as when the measurement began."""
        times, frequencies = _ends(self._times_ms), _ends(self._frequencies)
        if times is not None and self._reference() > RECOVERED * times[0]:
            return False
        now = self._frequency()
        return frequencies is None or now is None or now * RECOVERED >= frequencies[0]

    def _frequency(self) -> float | None:
        """MHz of the fastest core that this process may use, the one at work; None if the system tells none."""
        found = []
        for file in self._files:
            with suppress(OSError, ValueError):
                found.append(int(file.read_text()) / 1e3)
        return max(found, default=None)


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


def _is_ours(file: Path) -> bool:
    """Whether this process may run on the core that the file is about."""
    number = file.parent.parent.name.removeprefix("cpu")
    try:
        return int(number) in os.sched_getaffinity(0)
    except (AttributeError, ValueError):  # no affinity on Windows and macOS, which have no such files either
        return False
