"""Ctrl-C during a sweep."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noted_interrupts() -> Iterator[threading.Event]:
    """Note Ctrl-C too: Python drops the exception if it comes while an object of Dask's is being deleted."""
    noted, before = threading.Event(), signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        noted.set()
        signal.default_int_handler(number, frame)

    is_usual = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if is_usual:
        signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        if is_usual:
            signal.signal(signal.SIGINT, before)
