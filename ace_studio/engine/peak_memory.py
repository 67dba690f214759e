"""How much memory this process grows by while it does something."""

from __future__ import annotations

import gc
from pathlib import Path

import psutil

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""What Linux takes for: the peak is what is held now (proc_pid_clear_refs(5))."""


class PeakMemory:
    """From `start` on, the peak of the resident memory over what was held then. Linux only; elsewhere nothing is known.

    `reset_peak` forgets what was needed only on the way, such as the compiler's own memory.
    """

    def __init__(self) -> None:
        self._before_bytes: int | None = None

    def start(self) -> None:
        """Note what is held now."""
        gc.collect()
        self._before_bytes = psutil.Process().memory_info().rss
        self.reset_peak()

    def reset_peak(self) -> None:
        """Let the peak be what is held now."""
        gc.collect()
        try:
            _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
        except OSError:
            self._before_bytes = None

    def grown_bytes(self) -> int | None:
        """Peak since the last reset over what was held at the start; None if the system does not say."""
        if self._before_bytes is None:
            return None
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return max(0, int(line.split()[1]) * 1024 - self._before_bytes)
        return None
