"""Layouts of large graphs, in a thread: the window never waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from PySide6.QtCore import QObject, QTimer

from ace_studio.gui.style import tr

Worked = TypeVar("Worked")
Check = Callable[[], object]
"""To be called now and then by the work; it raises `Superseded`."""

LOOK_MS = 10
"""How often the window's thread looks whether the result is there."""


class Superseded(Exception):  # noqa: N818 - a request, not a mistake
    """The result is not wanted any more."""


class Background(QObject):
    """Does one piece of work at a time in a thread. A newer piece supersedes an older one.

    The thread has plain data and touches no Qt object, so everything here may be deleted while it works.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks: list[_Task] = []
        """At most one: what is awaited."""
        self.destroyed.connect(partial(_drop, self._tasks))
        self._then: Callable[[Any], object] = bool
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)

    @property
    def is_working(self) -> bool:
        """Whether a result is awaited."""
        return bool(self._tasks)

    def start(self, work: Callable[[Check], Worked], then: Callable[[Worked], object]) -> None:
        """Call ``work`` in a thread, and ``then`` with its result in this one. What was going on before is dropped."""
        self.stop()
        self._tasks.append(_Task(work))
        self._then = then
        self._tasks[0].start()
        self._timer.start()

    def stop(self) -> None:
        """Drop the work that is going on, if there is any."""
        self._timer.stop()
        self._then = bool
        _drop(self._tasks)

    def _look(self) -> None:
        task, then = self._tasks[0], self._then
        if task.is_alive():
            return
        self.stop()
        if task.error is not None:
            raise task.error
        then(task.result)


def _drop(tasks: list[_Task]) -> None:
    """Let the work of these tasks end at its next check."""
    while tasks:
        tasks.pop().is_wanted = False


class _Task(threading.Thread):
    def __init__(self, work: Callable[[Check], Any]) -> None:
        super().__init__(name=tr("graph layout"), daemon=True)
        self.result: Any = None
        self.error: Exception | None = None
        self._work = work
        self.is_wanted = True

    def run(self) -> None:
        try:
            self.result = self._work(self._check)
        except Superseded:
            return
        except Exception as error:  # noqa: BLE001 - raised again in the window's thread
            self.error = error

    def _check(self) -> None:
        if not self.is_wanted:
            raise Superseded
