"""How long the event loop of a window works at a stretch."""

import time

from PySide6.QtCore import QTimer


class Heartbeat:
    """The longest time between two beats of the event loop, on the wall and in CPU time of its thread."""

    def __init__(self):
        self.longest_ms = self.longest_cpu_ms = 0.0
        self.count = 0
        self._last = (time.monotonic(), time.thread_time())
        self._timer = QTimer(interval=5)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def _beat(self):
        now = (time.monotonic(), time.thread_time())
        self.longest_ms = max(self.longest_ms, 1000 * (now[0] - self._last[0]))
        self.longest_cpu_ms = max(self.longest_cpu_ms, 1000 * (now[1] - self._last[1]))
        self._last = now
        self.count += 1

    def stop(self):
        self._timer.stop()
