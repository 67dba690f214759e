"""A time limit for Python code that has no way to be asked to stop.

A watching thread raises an exception in the thread that traces, at its next Python instruction. That ends symbolic
arithmetic in pure Python, the usual slow case, within a second. It cannot end one long call into compiled code; only
the parent process can, by killing the worker.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_POLL_S = 0.1
_REPEAT_S = 1.0


class CaptureTimeoutError(BaseException):
    """The limit was reached. No `Exception`, so that the code it interrupts does not swallow it."""


class CaptureInterruptedError(BaseException):
    """The job was cancelled."""


@contextmanager
def interruptible(limit_s: float, *, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Run the block until it ends, the limit is reached or ``should_stop`` returns True.

    Raises: CaptureTimeoutError or CaptureInterruptedError out of the block.
    """
    watcher = _Watcher(threading.get_ident(), limit_s, should_stop)
    watcher.start()
    try:
        yield
    finally:
        _end(watcher)


def _end(watcher: _Watcher) -> None:
    """Stop the watcher, even if its exception arrives just now."""
    while True:
        try:
            watcher.end()
        except (CaptureTimeoutError, CaptureInterruptedError):
            continue
        return


class _Watcher(threading.Thread):
    """Waits, then interrupts, repeatedly in case the exception was swallowed."""

    def __init__(self, thread_id: int, limit_s: float, should_stop: Callable[[], bool]) -> None:
        super().__init__(daemon=True, name="capture-limit")
        self._thread_id = ctypes.c_ulong(thread_id)
        self._deadline = time.monotonic() + limit_s
        self._should_stop = should_stop
        self._is_over = threading.Event()
        self._lock = threading.Lock()

    def run(self) -> None:
        pause = _POLL_S
        while not self._is_over.wait(pause):
            reason = self._reason()
            if reason is not None:
                self._raise(reason)
                pause = _REPEAT_S

    def end(self) -> None:
        """Stop watching; an exception that has not arrived yet is withdrawn."""
        with self._lock:
            self._is_over.set()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread_id, None)

    def _reason(self) -> type[BaseException] | None:
        if self._should_stop():
            return CaptureInterruptedError
        return CaptureTimeoutError if time.monotonic() > self._deadline else None

    def _raise(self, reason: type[BaseException]) -> None:
        with self._lock:
            if not self._is_over.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread_id, ctypes.py_object(reason))
