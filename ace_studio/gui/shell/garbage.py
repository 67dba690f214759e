"""Garbage collection of reference cycles, in the window's thread only."""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

INTERVAL_MS = 500
"""Milliseconds between two looks at the collector's counts."""


class GarbageTimer(QObject):
    """Takes Python's automatic garbage collection over for as long as the window lives.

    Python collects in whichever thread allocates. A cycle may hold Qt objects, and Qt objects that are destroyed
    outside of the thread that owns them crash the process. A timer also keeps collections out of event handlers.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, interval=INTERVAL_MS)
        self._timer.timeout.connect(collect_due)
        self._timer.start()

    def stop(self) -> None:
        """Collect what is left and give the automatic collection back."""
        self._timer.stop()
        gc.collect()
        gc.enable()


def collect_due() -> int | None:
    """Collect the oldest generation whose count is past Python's threshold.

    Returns: the generation, 0 to 2; None if no generation is due.
    """
    counts, thresholds = gc.get_count(), gc.get_threshold()
    due = [generation for generation in (2, 1, 0) if counts[generation] > thresholds[generation] > 0]
    if not due:
        return None
    gc.collect(due[0])
    return due[0]
