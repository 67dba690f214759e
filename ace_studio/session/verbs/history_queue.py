"""Calls of the history that wait while another program holds it, so that the window never stands still for it."""

from __future__ import annotations

from collections.abc import Callable

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.session.kept.history import History, HistoryBusyError
from ace_studio.session.state import SessionState

_BUSY = Problem(
    code=ErrorCode.NOT_FOUND,
    what="The history of runs is in use by another program",
    why="Past runs cannot be read, and runs that end now wait to be added",
    remedy="It is tried again every second. If this stays, end the program that holds the history",
)


class HistoryQueue:
    """Makes each call now, or as soon as no other program holds the history, in their order."""

    def __init__(self, state: SessionState, store: History) -> None:
        self._state = state
        self._store = store
        self._calls: dict[object, Callable[[], object]] = {}

    def add(self, call: Callable[[], object], *, key: object = None) -> None:
        """Make this call, now or later; of one ``key`` (by default the call itself) only the last one waits."""
        was_empty = not self._calls
        self._calls.pop(key or call, None)
        self._calls[key or call] = call
        if was_empty:
            self.retry()
        if self._calls and not any(one is _BUSY for one in self._state.document.problems):
            self._state.change(history_waits=True)
            self._state.report(_BUSY)

    def retry(self, *, wait_s: float | None = None) -> None:
        """Make the calls that wait; each waits ``wait_s`` for the other program, if that is given."""
        self._store.wait_s = wait_s or self._store.wait_s
        while self._calls:
            key, call = next(iter(self._calls.items()))
            with self._state.reporting():
                try:
                    call()
                except HistoryBusyError:
                    return
            del self._calls[key]
        if self._state.document.history_waits:
            problems = tuple(one for one in self._state.document.problems if one is not _BUSY)
            self._state.change(history_waits=False, problems=problems)
