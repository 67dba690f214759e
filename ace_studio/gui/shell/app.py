"""The application: one window, one session, one engine thread."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QCoreApplication, QLocale, QThread, QTimer
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from ace_studio.gui.shell.engine_thread import EngineThread
from ace_studio.gui.shell.garbage import GarbageTimer
from ace_studio.gui.shell.interrupts import Interrupts
from ace_studio.gui.shell.main_window import MainWindow
from ace_studio.gui.shell.panel_table import PANELS
from ace_studio.gui.style.theme import Theme
from ace_studio.jobs.client import WorkerClient
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import AnyEvent
from ace_studio.records.places import resource_folder
from ace_studio.session.document import Document, EngineState, Part
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import Settings
from ace_studio.session.session import Session
from ace_studio.session.verbs.files import is_one_model

ENVIRONMENT_TRIES = 3
USAGE = "usage: ace-studio [open] [PATH | CODE.py WEIGHTS]"


class Preload(QThread):
    """Imports the panels in the background, so that opening the first model does not wait for them."""

    MODULES = ("shell.workbench", *(f"panels.{row.module}" for row in PANELS), "panels.graph")

    def run(self) -> None:
        """Import the modules while the main thread paints."""
        for name in self.MODULES:
            import_module(f"ace_studio.gui.{name}")


class Studio:
    """The parts of a running application, put together."""

    def __init__(self, application: QApplication, folders: UserFolders, *, client: WorkerClient | None = None) -> None:
        """Make all parts; the engine process starts after the window's first paint."""
        self.application = application
        settings = Settings(folders.settings)
        self.engine = EngineThread(
            client or WorkerClient(settings.interpreter),
            interpreter=lambda: settings.interpreter,
            grace_s=lambda: float(settings.get("cancel_grace_s")),
        )
        self.session = Session(self.engine, folders=folders, settings=settings)
        self.engine.received.connect(self._apply)
        self.theme = Theme(application, str(settings.get("theme")))
        self.window = MainWindow(self.session, self.theme, on_first_paint=self._start_engine)
        settings.subscribe(self._setting_changed)
        self.session.subscribe(self._ask_environment)
        self._environment_asked = 0
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
        """Query the environment as soon as the engine is idle: targets and devices are disabled until then."""
        is_wanted = document.environment is None and document.activity.state is EngineState.IDLE
        if is_wanted and Part.ACTIVITY in parts and self._environment_asked < ENVIRONMENT_TRIES:
            self._environment_asked += 1
            QTimer.singleShot(0, self.session.jobs.request_environment)

    def _setting_changed(self, key: str) -> None:
        if key == "interpreter":
            self.session.jobs.restart_engine()
            self._environment_asked = 0
            self.session.jobs.request_environment()

    def open_first(self, paths: Sequence[str]) -> None:
        """Open the files of the command line, or the last file if the settings say so."""
        recent = self.session.settings.recent_files
        if paths:
            self.session.files.open_paths(paths)
        elif self.session.settings.get("reopen_last") and recent and Path(recent[0]).exists():
            self.session.files.open_path(recent[0])

    def close(self) -> None:
        """End the engine process and the threads."""
        self.session.history.retry(wait_s=2.0)
        self._preload.wait()
        self.engine.close()
        self._garbage.stop()


def run_window(arguments: Sequence[str]) -> int:
    """Open the window and return its exit code when it is closed.

    Args:
        arguments: words after ``ace-studio`` or ``ace-studio open``: nothing, one path, or code and its weights.
    """
    paths = [word for word in arguments if not word.startswith("-")]
    if len(paths) != len(arguments) or not is_one_model(paths):
        why = "the window takes one model: a file, or Python code and its weights"
        print(f"{USAGE}\n  why: {why}", file=sys.stderr)  # noqa: T201 - there is no window
        return 2
    folders = UserFolders.of_user()
    application = _application(Settings(folders.settings))
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


def _application(settings: Settings) -> QApplication:
    # One way to write numbers everywhere, that of recipes and reports, whatever the desktop's language is.
    QLocale.setDefault(QLocale.c())
    existing = QCoreApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    scale = int(settings.get("scale_percent"))
    if scale != 100:
        os.environ.setdefault("QT_SCALE_FACTOR", str(scale / 100))
    application = QApplication(["ace-studio"])
    application.setApplicationName("ACE Studio")
    application.setApplicationDisplayName("")
    application.setDesktopFileName("ace-studio")
    application.setWindowIcon(QIcon(str(resource_folder() / "icons" / "ace-studio.svg")))
    return application


def _show_mistake(studio: Studio, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an exception in a slot: the window shows it, and the traceback goes to the terminal."""
    traceback.print_exception(kind, error, trace)
    if isinstance(error, Exception):
        problem = Problem(
            code=ErrorCode.INTERNAL,
            what="Something went wrong in the window",
            why=f"{kind.__name__}: {error}",
            remedy="You can go on. Please report this with the details",
            details="".join(traceback.format_exception(kind, error, trace)),
        )
        studio.session.report(problem)
