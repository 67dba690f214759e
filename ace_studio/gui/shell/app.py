"""The application: one window, one session, one engine thread."""

from __future__ import annotations

import gc
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSocketNotifier, Qt, QThread, QTimer, Signal
from PySide6.QtWidgets import QApplication

from ace_studio.gui.shell.engine_thread import EngineThread
from ace_studio.gui.shell.main_window import MainWindow
from ace_studio.gui.shell.panel_table import PANELS
from ace_studio.gui.style import Theme, tr
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import AnyEvent
from ace_studio.records.recipes.recipe import EngineChoice
from ace_studio.records.sweeps import SweepOrder
from ace_studio.session.document import Document, EngineState, Part
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import INTERPRETERS_KEY, Settings
from ace_studio.session.session import Session

if TYPE_CHECKING:
    from ace_studio.jobs.client import WorkerClient

ENVIRONMENT_TRIES = 3


class Preload(QThread):
    """Imports the panels and the charts in the background, so that opening the first model does not wait for them."""

    MODULES = ("shell.workbench", *(f"panels.{row.id}" for row in PANELS), "panels.graph")

    def run(self) -> None:
        """Import the modules while the main thread paints."""
        for name in self.MODULES:
            import_module(f"ace_studio.gui.{name}")
        charts = import_module("ace_studio.gui.panels.charts").CHARTS
        for chart in charts:
            import_module(f"ace_studio.gui.charts.{chart.module}")


class Studio:
    """The parts of a running application, put together."""

    def __init__(self, application: QApplication, folders: UserFolders, *, client: WorkerClient | None = None) -> None:
        self.application = application
        settings = Settings(folders.settings)
        self.engine = EngineThread(
            lambda: client or _client(settings),
            interpreter=lambda: settings.interpreter(self.session.document.folder),
            grace_s=lambda: float(settings.get("cancel_grace_s")),
        )
        self.sweeps = SweepThread()
        self.session = Session(self.engine, folders=folders, settings=settings, sweeps=self.sweeps)
        self.engine.received.connect(self._apply)
        self.sweeps.received.connect(self.session.sweep.apply)
        self.theme = Theme(application, str(settings.get("theme")))
        self.window = MainWindow(self.session, self.theme, on_first_paint=self._start_engine)
        settings.subscribe(self._setting_changed)
        self.session.subscribe(self._ask_environment)
        self._environment_asked = 0
        self._environment_engine: tuple[EngineChoice, str] | None = None
        self._garbage = GarbageTimer(self.window)
        self._preload = Preload(self.window)
        # Modules stay for good; without this, each full garbage collection would scan them, which takes 50 ms.
        self._preload.finished.connect(gc.freeze)

    def _apply(self, event: AnyEvent) -> None:
        self.session.apply(event)

    def _start_engine(self) -> None:
        self.engine.start()
        self._preload.start()

    def _ask_environment(self, document: Document, parts: frozenset[Part]) -> None:
        """Query the environment of the chosen engine as soon as it is idle: targets are disabled until then."""
        engine = document.recipe.engine
        if document.activity.state is not EngineState.IDLE or not self.session.jobs.may_connect():
            return
        which = engine, "" if engine.host else self.session.settings.chosen_interpreter(document.folder)
        is_other = which != self._environment_engine
        is_wanted = document.environment is None and Part.ACTIVITY in parts
        if is_other or (is_wanted and self._environment_asked < (1 if engine.host else ENVIRONMENT_TRIES)):
            self._environment_engine = which
            self._environment_asked = 1 if is_other else self._environment_asked + 1
            QTimer.singleShot(0, self.session.jobs.request_environment)

    def _setting_changed(self, key: str) -> None:
        if key in {"interpreter", INTERPRETERS_KEY}:
            self.session.jobs.restart_engine()
            self._environment_asked = 0
            self.session.jobs.request_environment()

    def open_first(self, paths: Sequence[str]) -> None:
        """Open the files of the command line, or the last file if the settings say so."""
        recent = self.session.settings.recent_files
        if paths:
            self.window.commands.open_path(*paths)
        elif self.session.settings.get("reopen_last") and recent and Path(recent[0]).exists():
            self.session.files.open_path(recent[0])

    def close(self) -> None:
        """End the engine process and the threads."""
        self.session.history.retry(wait_s=2.0)
        self._preload.wait()
        self.engine.close()
        self.sweeps.stop()
        self._garbage.stop()


def _client(settings: Settings) -> WorkerClient:
    from ace_studio.jobs.engines import EngineClient  # noqa: PLC0415 - not needed for the first picture

    return EngineClient(settings.interpreter(), contain=lambda: settings.contain, limits=lambda: settings.limits)


def show_window(application: QApplication, folders: UserFolders, paths: Sequence[str]) -> int:
    """Show the window with a model, or with none, until it is closed; returns the exit code."""
    studio = Studio(application, folders)
    sys.excepthook = partial(_show_mistake, studio)
    _interrupts = Interrupts(application, studio.window)
    studio.window.show()
    if paths or studio.session.settings.get("reopen_last"):
        QTimer.singleShot(0, lambda: studio.open_first(paths))
    try:
        return application.exec()
    finally:
        studio.window.hide()
        studio.close()


def _show_mistake(studio: Studio, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an exception in a slot: the window shows it, and the traceback goes to the terminal."""
    traceback.print_exception(kind, error, trace)
    if isinstance(error, Exception):
        problem = Problem(
            code=ErrorCode.INTERNAL,
            what=tr("Something went wrong in the window"),
            why=f"{kind.__name__}: {error}",
            remedy=tr("You can go on. Please report this with the details"),
            details="".join(traceback.format_exception(kind, error, trace)),
        )
        studio.session.report(problem)


class Interrupts(QObject):
    """Closes the window at SIGINT and SIGTERM; the exit code is 128 plus the signal's number, as shells have it.

    Qt's event loop runs no Python between events, so a handler alone would wait for the next one: Python also writes
    the signal's number into a socket that the loop watches.
    """

    def __init__(self, application: QApplication, window: MainWindow) -> None:
        super().__init__(window)
        self._application, self._window = application, window
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        self._notifier = QSocketNotifier(self._reading.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._close)

    def _close(self) -> None:
        number = self._reading.recv(1)[0]
        self._window.leave()
        self._application.exit(128 + number)


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


if TYPE_CHECKING:
    from ace_studio.jobs.sweep_process import SweepProcess


class SweepThread(QObject):
    """Owns the process of the sweep, at most one; the session's `SweepLink`."""

    received = Signal(object)
    """A `SweepEvent` or the `SweepEnded`, on the thread that this object lives on."""
    _arrived = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._process: SweepProcess | None = None
        self._arrived.connect(self.received, Qt.ConnectionType.QueuedConnection)

    def start(self, order: SweepOrder) -> None:
        """Start a sweep. Raises: OSError if its process cannot be started."""
        from ace_studio.jobs.sweep_process import SweepProcess  # noqa: PLC0415 - not needed for the first picture

        self._process = SweepProcess(order, self._arrived.emit)

    def stop(self) -> None:
        """Ask the sweep to stop and to keep what is done; nothing happens if none runs."""
        if self._process is not None:
            self._process.stop()
