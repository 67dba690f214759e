"""About: what this is, its version, and what the engine runs on."""

from __future__ import annotations

from PySide6 import __version__ as qt_version
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QDialog, QPlainTextEdit, QWidget

import ace_studio
from ace_studio.gui.style.theme import monospace
from ace_studio.gui.widgets.small import MARGIN, button, column, fit_screen, label, row
from ace_studio.gui.words.formatting import bytes_text
from ace_studio.records.messages import EnvironmentReport
from ace_studio.session.session import Session


class AboutDialog(QDialog):
    """The versions, ready to be copied into a report."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        """Show what is known now."""
        super().__init__(parent)
        self.setWindowTitle("About ACE Studio")
        self.setProperty("help", "index")
        fit_screen(self, 600, 460)
        facts = QPlainTextEdit(about_text(session.document.environment))
        facts.setReadOnly(True)
        facts.setFont(monospace())
        facts.setAccessibleName("Versions")
        text = label(
            "Trace, compress, lower, measure and verify PyTorch models, on this machine. "
            "Free software under the Apache License 2.0. Qt is used under the LGPL.",
            "dim",
        )
        copy = button("Copy", lambda: QApplication.clipboard().setText(facts.toPlainText()))
        close = button("Close", self.accept)
        close.setDefault(True)
        title = label("ACE Studio", "title")
        title.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self.setLayout(column(title, text, facts, row(None, copy, close), margin=MARGIN))


def about_text(environment: EnvironmentReport | None) -> str:
    """Versions of the window and of the engine as plain lines."""
    lines = [f"ACE Studio {ace_studio.__version__}", f"Qt {qt_version}"]
    if environment is None:
        return "\n".join([*lines, "The engine has not reported its versions yet."])
    lines += [
        f"Python {environment.python} ({environment.executable})",
        f"{environment.platform}",
        f"{environment.cpu}, {environment.cores} cores, {bytes_text(environment.memory_bytes)}",
        "",
        *(f"{name} {version}" for name, version in environment.versions.items()),
        "",
        *(f"{device.name}: {device.label if device.available else device.reason}" for device in environment.devices),
        *environment.notes,
    ]
    return "\n".join(lines)
