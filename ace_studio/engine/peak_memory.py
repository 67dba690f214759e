"""Measures by how much the memory of this process grows."""

from __future__ import annotations

import gc
from pathlib import Path

import psutil

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""Written to clear_refs, it resets the peak to the current size (proc_pid_clear_refs(5))."""


class PeakMemory:
    """The peak of the resident memory since `start`, minus the size at that time. Linux only; None elsewhere.

    `reset_peak` forgets what was needed only on the way, such as the compiler's own memory.
    """

    def __init__(self) -> None:
        self._before_bytes: int | None = None

    def start(self) -> None:
        """Note the current size."""
        gc.collect()
        self._before_bytes = psutil.Process().memory_info().rss
        self.reset_peak()

    def reset_peak(self) -> None:
        """Reset the peak to the current size."""
        gc.collect()
        try:
            _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
        except OSError:
            self._before_bytes = None

    def grown_bytes(self) -> int | None:
        """Peak since the last reset minus the size at the start, in bytes; None if the system does not tell."""
        if self._before_bytes is None:
            return None
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return max(0, int(line.split()[1]) * 1024 - self._before_bytes)
        return None
