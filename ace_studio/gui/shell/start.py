"""The start of the window: the application and its language come before any module that holds texts."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from ace_studio.gui.style import STYLE, install_language
from ace_studio.records.places import resource_folder
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import Settings
from ace_studio.session.verbs.files import is_one_model

USAGE = "usage: ace-studio [open] [PATH | CODE.py WEIGHTS]"


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
    application = make_application(Settings(folders.settings))
    exit_code: int = import_module("ace_studio.gui.shell.app").show_window(application, folders, paths)
    return exit_code


def make_application(settings: Settings) -> QApplication:
    """The process's application, with the scale and the language of the settings."""
    # Numbers as recipes and reports write them, whatever the desktop's language is; a language pack brings its own way.
    QLocale.setDefault(QLocale.c())
    existing = QCoreApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    scale = int(settings.get("scale_percent"))
    if scale != 100:
        os.environ.setdefault("QT_SCALE_FACTOR", str(scale / 100))
    # As an argument: for what setStyle returns, PySide makes a class with a dozen enumerations first.
    application = QApplication(["ace-studio", "-style", STYLE])
    application.setProperty("style", STYLE)
    application.setApplicationName("ACE Studio")
    application.setApplicationDisplayName("")
    application.setDesktopFileName("ace-studio")
    application.setWindowIcon(QIcon(str(resource_folder() / "icons" / "ace-studio.svg")))
    install_language(str(settings.get("language")), application)
    return application
