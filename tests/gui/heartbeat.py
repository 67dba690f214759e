"""How long the event loop of a window works at a stretch."""

import time
from collections import Counter

from PySide6.QtCore import QTimer

NOTED_MS = 20.0
"""A stretch of so much work is worth to be compared with the reference."""
REFERENCE_MS = 2.0
"""CPU time of the reference on the machine that the limits of the tests are meant for, when nothing else runs there."""


def _reference_ms() -> float:
    """CPU time of a computation that is always the same, on this machine as it is now."""
    start_s = time.thread_time()
    Counter(str(number * 7919 % 1009) for number in range(10_000))
    return 1000 * (time.thread_time() - start_s)


class Heartbeat:
    """The longest time between two beats of the event loop, on the wall and in CPU time of its thread.

    Where other processes compute, the same work takes up to twice the CPU time, because the cores share caches and
    units. So the CPU time of a long stretch is divided by how much slower the reference is at this moment than on a
    quiet machine.
    """

    def __init__(self):
        self.longest_ms = self.longest_cpu_ms = 0.0
        self.count = 0
        self._last = _clocks()
        self._timer = QTimer(interval=5)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def _beat(self):
        wall_ms, cpu_ms = (1000 * (now - last) for now, last in zip(_clocks(), self._last, strict=True))
        if cpu_ms > NOTED_MS:
            cpu_ms /= max(1.0, *(_reference_ms() / REFERENCE_MS for _ in range(3)))
        self.longest_ms = max(self.longest_ms, wall_ms)
        self.longest_cpu_ms = max(self.longest_cpu_ms, cpu_ms)
        self._last = _clocks()
        self.count += 1

    def stop(self):
        self._timer.stop()


def _clocks() -> tuple[float, float]:
    return time.monotonic(), time.thread_time()
