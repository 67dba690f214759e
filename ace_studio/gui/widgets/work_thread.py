"""Work off the main thread, on this machine or another one, which can be stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication, QObject, QThread, Signal

from ace_studio.records.errors import AceError, ErrorCode, Problem, message_of

if TYPE_CHECKING:
    import subprocess

Tell = Callable[[Any], None]
Started = Callable[["subprocess.Popen[Any]"], object]
Work = Callable[[Tell, Started], object]
"""Tells progress to the first, and gives every process that it starts to the second."""


class WorkThread(QThread):
    """One piece of work at a time. `finished` follows, also after `stop`."""

    told = Signal(object)
    """What the work tells of its progress."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._work: Work | None = None
        self._process: subprocess.Popen[Any] | None = None
        self._is_stopped = False
        self.found: object = None
        """What the work returned."""
        self.problem: Problem | None = None
        """Why it returned nothing."""
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.stop)

    def begin(self, work: Work) -> None:
        """Begin; does nothing while other work goes on."""
        if not self.isRunning():
            self._work, self.found, self.problem, self._is_stopped = work, None, None, False
            self.start()

    def run(self) -> None:
        """Work in this thread."""
        assert self._work is not None
        try:
            self.found = self._work(self._tell, self._started)
        except AceError as error:
            self.problem = error.problem
        except OSError as error:
            from ace_studio.records.system_faults import system_problem  # noqa: PLC0415 - loaded when it is needed

            self.problem = system_problem(error) or Problem(
                code=ErrorCode.SYSTEM, what="A file could not be used", why=message_of(error)
            )

    def _tell(self, event: object) -> None:
        if self._is_stopped:
            raise AceError.of(ErrorCode.CANCELLED, "Cancelled")
        self.told.emit(event)

    def _started(self, process: subprocess.Popen[Any]) -> None:
        self._process = process
        if self._is_stopped:
            process.kill()

    @property
    def is_stopped(self) -> bool:
        """Whether it was asked to stop."""
        return self._is_stopped

    def ask_to_stop(self) -> None:
        """End the work; `finished` follows."""
        self._is_stopped = True
        if self._process is not None:
            with suppress(OSError):
                self._process.kill()

    def stop(self) -> None:
        """End the work, and wait until nothing is left of it."""
        self.ask_to_stop()
        self.wait()
