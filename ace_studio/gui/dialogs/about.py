"""About: what this is, the versions for a report, and the licences of everything that it runs on."""

from __future__ import annotations

from PySide6 import __version__ as qt_version
from PySide6.QtWidgets import QApplication, QDialog, QListWidget, QPlainTextEdit, QSplitter, QTabWidget, QWidget

import ace_studio
from ace_studio.gui.dialogs.licences import SHIPPED_DATA, licences
from ace_studio.gui.style.theme import monospace
from ace_studio.gui.widgets.small import MARGIN, button, column, fit_screen, label, row
from ace_studio.gui.words.formatting import bytes_text
from ace_studio.records.messages import EnvironmentReport
from ace_studio.session.session import Session


class AboutDialog(QDialog):
    """Versions, ready to be copied into a report, and licences."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        """Show what is known now."""
        super().__init__(parent)
        self.setWindowTitle("About ACE Studio")
        self.setProperty("help", "index")
        fit_screen(self, 680, 480)
        self.facts = _reading("Versions", about_text(session.document.environment))
        self.licences = QListWidget()
        self.licences.setAccessibleName("Packages")
        self.licences.currentRowChanged.connect(self._show_licence)
        self.text = _reading("Licence", "")
        both = QSplitter()
        both.addWidget(self.licences)
        both.addWidget(self.text)
        both.setSizes([230, 400])
        both.setHandleWidth(1)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.addTab(self.facts, "Versions")
        self.tabs.addTab(both, "Licences")
        self.tabs.currentChanged.connect(lambda at: self._fill_licences() if at else None)
        text = label(
            "Trace, compress, lower, measure and verify PyTorch models, on this machine. "
            "Free software under the Apache License 2.0. Qt is used under the LGPL.",
            "dim",
        )
        clipboard = QApplication.clipboard()
        copy = button("Copy versions", lambda: clipboard.setText(self.facts.toPlainText()), tip="For a bug report")
        close = button("Close", self.accept)
        close.setDefault(True)
        title = label("ACE Studio", "title")
        self.setLayout(column(title, text, self.tabs, row(None, copy, close), margin=MARGIN))

    def _fill_licences(self) -> None:
        """List the packages, when they are first looked at: that reads a file of each."""
        if not self.licences.count():
            self._found = licences()
            self.licences.addItems([each.title for each in self._found])
            self.licences.addItem("Icons, fonts and data")
            for at in range(self.licences.count()):
                self.licences.item(at).setToolTip(self.licences.item(at).text())
            self.licences.setCurrentRow(0)

    def _show_licence(self, at: int) -> None:
        is_package = 0 <= at < len(self._found)
        self.text.setPlainText(self._found[at].text if is_package else SHIPPED_DATA)


def _reading(name: str, text: str) -> QPlainTextEdit:
    made = QPlainTextEdit(text)
    made.setReadOnly(True)
    made.setFont(monospace())
    made.setAccessibleName(name)
    return made


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
