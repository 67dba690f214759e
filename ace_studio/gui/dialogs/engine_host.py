"""The dialog that chooses the machine of the engine: this one, or another by SSH, which it checks."""

from __future__ import annotations

import subprocess
from contextlib import suppress

from PySide6.QtCore import QObject, QThread
from PySide6.QtWidgets import QDialog, QLayout, QWidget

from ace_studio.gui.style.language import tr
from ace_studio.gui.widgets.layouts import box, column, row, scrolling
from ace_studio.gui.widgets.small import MARGIN, button, fit_screen, label, selectable, set_role, text_field
from ace_studio.gui.words.formatting import bytes_text
from ace_studio.records.errors import AceError, Problem
from ace_studio.records.hosts import HOST_WORD, HostReport
from ace_studio.session.session import Session

_INTRODUCTION = tr(
    "Jobs of this recipe run there, and their files are sent there once you trust them. The system's ssh makes the "
    "connection, with your keys and known hosts; no password is asked for."
)


class HostCheck(QThread):
    """Asks a host what it has, off the main thread. `finished` follows, also after `stop`."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._host = self._python = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False
        self.report: HostReport | None = None
        self.problem: Problem | None = None
        """Why there is no report."""

    def check(self, host: str, python: str) -> None:
        """Begin; does nothing while another check goes on."""
        if not self.isRunning():
            self._host, self._python = host, python
            self.report = self.problem = None
            self.start()

    def run(self) -> None:
        """Ask in this thread."""
        from ace_studio.jobs.hosts.check import check_host  # noqa: PLC0415 - loaded when it is needed

        try:
            self.report = check_host(self._host, self._python, started=self._started)
        except AceError as error:
            self.problem = error.problem

    def _started(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._is_stopped:
            process.kill()

    def stop(self) -> None:
        """End the check, and wait until nothing is left of it."""
        self._is_stopped = True
        if self._process is not None:
            with suppress(OSError):
                self._process.kill()
        self.wait()


class EngineHostDialog(QDialog):
    """A host and its Python; an empty host is this machine."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Engine on another machine"))
        self.setProperty("help", "engine-elsewhere")
        fit_screen(self, 560, 400)
        self._session = session
        engine = session.document.recipe.engine
        self.host = text_field(tr("Host"), "user@box")
        self.host.setText(engine.host)
        self.python = text_field(tr("Its Python"), tr("empty: python3"))
        self.python.setText(engine.python)
        self.said = selectable(label("", "dim"))
        self.check_button = button(tr("Check"), self._check)
        self.use_button = button(tr("Use it"), self._use, role="primary")
        self.use_button.setDefault(True)
        for other in (self.check_button, cancel := button(tr("Cancel"), self.reject)):
            other.setAutoDefault(False)
        self._asked = ("", "")
        self.checking = HostCheck(self)
        self.checking.finished.connect(self._checked)
        self.finished.connect(lambda _: self.checking.stop())
        content = column(
            label(_INTRODUCTION, "dim"),
            _named(tr("Host; empty: this machine"), self.host),
            _named(tr("Its Python"), self.python),
            row(self.check_button, None),
            self.said,
            None,
            margin=MARGIN,
            gap=10,
        )
        self.setLayout(column(scrolling(box(content)), row(None, cancel, self.use_button, margin=MARGIN), gap=0))
        self.host.textChanged.connect(self._edited)
        self.python.textChanged.connect(self._edited)
        self._edited()
        self.host.setFocus()

    def _edited(self) -> None:
        """Say what is wrong with the name; what a check said was about another one."""
        host, _ = self._given()
        is_name = HOST_WORD.fullmatch(host) is not None
        self.use_button.setEnabled(is_name or not host)
        self.check_button.setEnabled(is_name and not self.checking.isRunning())
        self.python.setEnabled(bool(host))
        wrong = tr("Write user@box; a port and a key belong in ~/.ssh/config")
        self._say("" if is_name or not host else wrong, "warn")

    def _check(self) -> None:
        self.check_button.setEnabled(False)
        self._asked = self._given()
        self._say(tr("Asking {host} …", host=self._asked[0]), "dim")
        self.checking.check(*self._asked)

    def _given(self) -> tuple[str, str]:
        return self.host.text().strip(), self.python.text().strip()

    def _checked(self) -> None:
        report, problem = self.checking.report, self.checking.problem
        self._edited()
        if self._asked != self._given():
            return  # the answer is about what was written before
        if problem is not None:
            self._say(problem.as_text(), "bad")
        elif report is not None and report.problems:
            self._say("\n".join(one.as_text() for one in report.problems), "bad")
        elif report is not None:
            words = tr(
                "An engine can run there: Python {python}, torch {torch}, {cores} cores, {free} free.",
                python=report.version,
                torch=report.packages.get("torch", ""),
                cores=report.cores,
                free=bytes_text(report.disk_free_bytes),
            )
            self._say(words, "good")

    def _say(self, text: str, role: str) -> None:
        self.said.setText(text)
        set_role(self.said, role)
        self.said.setVisible(bool(text))

    def _use(self) -> None:
        """Put the machine into the recipe. What the recipe says of files stays as long as it names a host."""
        host, python = self._given()
        kept = self._session.document.recipe.engine
        python, files = (python, kept.files) if host else ("", ())
        self._session.choices.set_choice(
            "engine", tr("the machine of the engine"), host=host, python=python, files=files
        )
        self.accept()


def _named(text: str, field: QWidget) -> QLayout:
    name = label(text, "heading")
    name.setBuddy(field)
    return column(name, row(field), gap=3)
