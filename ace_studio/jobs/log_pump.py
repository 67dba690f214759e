"""Reads what the worker prints: all of it, so that the worker never waits, but passes on a limited number of lines."""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

LINES_PER_S = 200
"""Lines passed on per second and stream; a burst of `BURST_LINES` may come at once."""
BURST_LINES = 400
LINE_LIMIT = 2000
"""Characters of a line that are passed on."""
TAIL_LINES = 200
"""Lines kept for the record of a failure."""
_READ_BYTES = 256 * 1024
_TAIL_BYTES = 16 * 1024
_PAUSE_S = 0.002
"""Pause between reads during a flood: at most 128 MB/s, and the window's thread keeps the interpreter lock."""
_F_SETPIPE_SZ = 1031


class LineBudget:
    """A token bucket of lines."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = float(BURST_LINES)
        self._last_s = clock()

    def take(self, count: int) -> int:
        """Return how many of ``count`` lines may be passed on now, and use them up."""
        now_s = self._clock()
        self._left = min(float(BURST_LINES), self._left + (now_s - self._last_s) * LINES_PER_S)
        self._last_s = now_s
        granted = min(count, int(self._left))
        self._left -= granted
        return granted


class LogPump:
    """Reads one stream of the worker in a thread of its own, until every process has closed it."""

    def __init__(self, descriptor: int, *, emit: Callable[[str], None], tail: deque[str]) -> None:
        """``emit`` is called with each line passed on; ``tail`` gets the last lines in any case."""
        self._descriptor = descriptor
        self._emit = emit
        self._tail = tail
        self._budget = LineBudget()
        self._rest = b""
        self._left_out = 0
        self._thread = threading.Thread(target=self._pump, name="ace-log", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        if sys.platform == "linux":
            import fcntl  # noqa: PLC0415 - does not exist on Windows

            # A larger pipe needs fewer reads in a flood; the kernel refuses if the user's pipes exceed their limit.
            with suppress(OSError):
                fcntl.fcntl(self._descriptor, _F_SETPIPE_SZ, 1024 * 1024)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until everything was read, at most ``timeout_s``."""
        self._thread.join(timeout_s)

    def _pump(self) -> None:
        while chunk := self._read():
            if not self._take(chunk):
                time.sleep(_PAUSE_S)
        if self._rest:
            self._pass_on([self._rest])
            self._rest = b""
        self._say_left_out()

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except OSError:
            return b""

    def _take(self, chunk: bytes) -> bool:
        """Split into lines and pass them on; False during a flood."""
        dropped = 0
        if len(chunk) > 2 * _TAIL_BYTES:
            head = chunk[:_TAIL_BYTES]
            dropped = chunk.count(b"\n") - head.count(b"\n")
            self._lines(head)
            chunk = chunk[-_TAIL_BYTES:]
            self._rest = b""
            dropped -= chunk.count(b"\n")
            self._left_out += max(0, dropped)
        return self._lines(chunk) and not dropped

    def _lines(self, chunk: bytes) -> bool:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-LINE_LIMIT * 4 :]
        return self._pass_on(lines)

    def _pass_on(self, lines: list[bytes]) -> bool:
        granted = self._budget.take(len(lines))
        if granted and self._left_out:
            self._say_left_out()
        texts = [_text(line) for line in lines]
        self._tail.extend(texts)
        for text in texts[:granted]:
            self._emit(text)
        self._left_out += len(lines) - granted
        return granted == len(lines)

    def _say_left_out(self) -> None:
        if self._left_out:
            self._emit(f"... {self._left_out} lines left out ...")
            self._left_out = 0


def _text(line: bytes) -> str:
    """The line as text; of a progress bar, which overwrites itself, only the last state."""
    text = line.rstrip(b"\r")[-LINE_LIMIT * 4 :].rpartition(b"\r")[2].decode("utf-8", errors="replace")
    return text if len(text) <= LINE_LIMIT else text[:LINE_LIMIT] + " ..."
