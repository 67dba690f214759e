"""Jobs on one machine take turns to measure: a file is locked while a job is in the phase that measures."""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from ace_studio.engine.progress import Reporter
from ace_studio.records.messages import Phase

_CHECK_S = 1.0


@contextmanager
def in_turn(reporter: Reporter, path: str) -> Iterator[None]:
    """Hold the lock during every phase `Phase.MEASURE` of the body; an empty path is no lock.

    A lock that cannot be opened, as in a contained process, is no lock either: it protects figures, not data.
    """
    if not path:
        yield
        return
    lock = FileLock(path)

    def began(phase: Phase) -> None:
        if phase is not Phase.MEASURE:
            lock.release()
        elif not lock.is_locked:
            _take(lock, reporter)

    reporter.phase_began = began
    try:
        yield
    finally:
        lock.release()


def _take(lock: FileLock, reporter: Reporter) -> None:
    while True:
        try:
            lock.acquire(timeout=0 if reporter.is_cancelled else _CHECK_S)
        except Timeout:
            reporter.advance(None, "waiting while another job measures on this machine")
        except OSError:
            return
        else:
            return
