"""The dialog that chooses the engine of a project: a Python of this machine, or another machine by SSH.

Either is checked first, and what a host lacks is installed there.
"""

from functools import partial

from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import GAP, MARGIN, box, column, row, scrolling
from ace_studio.gui.widgets.small import (
    button,
    fit_screen,
    label,
    named,
    plain_text,
    quiet,
    selectable,
    show_words,
    text_field,
)
from ace_studio.gui.widgets.work_thread import Started, Tell, WorkThread
from ace_studio.gui.words.formatting import bytes_text
from ace_studio.gui.words.problems import problem_text
from ace_studio.records.errors import ErrorCode
from ace_studio.records.hosts import HOST_WORD, HostReport
from ace_studio.session.session import Session

_THERE = tr(
    "Jobs of this recipe run there, and their files are sent there once you trust them and allow the list of them. The "
    "system's ssh makes the connection, with your keys and known hosts; no password is asked for."
)
_HERE = tr(
    "This Python loads and runs the models of the folder below, with its packages. It is kept in your settings, never "
    "in the recipe."
)
_FOR_ALL = tr("This Python loads and runs your models, with its packages.")


class EngineHostDialog(QDialog):
    """A host and its Python; an empty host is this machine."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("help", "engine-elsewhere")
        fit_screen(self, 600, 460)
        self._session, self._settings = session, session.settings
        engine, self._folder = session.document.recipe.engine, session.document.folder
        self.setWindowTitle(tr("Engine of this project") if self._folder else tr("Python of the engine"))
        self._pythons = {True: engine.python, False: self._settings.project_interpreter(self._folder)}
        """What is written as the Python there, and here."""
        self._was_there = bool(engine.host)
        self._about = label("", "dim")
        self.host = text_field(tr("Host"), "user@box")
        self.host.setText(engine.host)
        self.python = text_field(tr("Its Python"), "")
        self.python.setText(self._pythons[self._was_there])
        self.browse_button = button(tr("Browse…"), self._browse)
        self.said = selectable(label("", "dim"))
        self._say = partial(show_words, self.said)
        self.log = plain_text(tr("What pip says"))
        self.log.hide()
        self.work = WorkThread(self)
        self.work.told.connect(self.log.appendPlainText)
        self.work.finished.connect(self._answered)
        self.finished.connect(lambda _: self.work.stop())
        self.check_button = button(tr("Check"), self._check)
        self.install_button = button(tr("Install what is missing"), self._install)
        self.stop_button = button(tr("Cancel the installation"), self.work.ask_to_stop)
        self.use_button = button(tr("Use it"), self._use, role="primary")
        self.use_button.setDefault(True)
        cancel = button(tr("Cancel"), self.reject)
        self._asked = ("", "")
        self._report: HostReport | None = None
        """What was found about what is written now."""
        self._is_using = self._is_installing = False
        host = named(tr("Host; empty: this machine"), self.host)
        host.setVisible(bool(self._folder))
        content = column(
            self._about,
            host,
            named(tr("Its Python"), self.python, self.browse_button),
            row(self.check_button, self.install_button, self.stop_button, None),
            self.said,
            self.log,
            None,
            margin=MARGIN,
            gap=GAP,
        )
        self.setLayout(column(scrolling(box(content)), row(None, cancel, self.use_button, margin=MARGIN), gap=0))
        self.host.textChanged.connect(self._edited)
        self.python.textChanged.connect(self._edited)
        self._edited()
        (self.host if self._was_there else self.python).setFocus()

    def _given(self) -> tuple[str, str]:
        return self.host.text().strip(), self.python.text().strip()

    def _edited(self) -> None:
        """Another engine is written: what was found was about another one."""
        is_there = bool(self._given()[0])
        if is_there is not self._was_there:
            self._pythons[self._was_there] = self.python.text()
            self._was_there = is_there
            with quiet(self.python):
                self.python.setText(self._pythons[is_there])
        self._report = None
        self._is_using = False
        default = "python3" if is_there else self._settings.interpreter()
        self.python.setPlaceholderText(tr("empty: {python}", python=default))
        about = _FOR_ALL if not self._folder else _THERE if is_there else f"{_HERE}\n{self._folder}"
        self._about.setText(about)
        wrong = tr("Write user@box; a port and a key belong in ~/.ssh/config")
        self._say("" if self._is_name else wrong, "warn")
        self._allow()

    @property
    def _is_name(self) -> bool:
        host, _ = self._given()
        return not host or HOST_WORD.fullmatch(host) is not None

    def _allow(self) -> None:
        """Enable what can be done now."""
        is_free, is_there = not self.work.isRunning(), bool(self._given()[0])
        self.use_button.setEnabled(self._is_name and (is_free or (is_there and not self._is_installing)))
        self.check_button.setEnabled(self._is_name and is_free)
        self.install_button.setVisible(is_there and is_free and self._report is not None and bool(self._report.missing))
        self.stop_button.setVisible(self._is_installing)
        self.browse_button.setVisible(not is_there)
        for field in (self.host, self.python):
            field.setReadOnly(self._is_installing)

    def _browse(self) -> None:
        as_named = QFileDialog.Option.DontResolveSymlinks  # the Python of an environment is a link
        title = tr("Choose a Python that has torch")
        path, _ = QFileDialog.getOpenFileName(self, title, self.python.text() or self._folder, options=as_named)
        if path:
            self.python.setText(path)

    # --- asking ---

    def _check(self) -> None:
        self._asked = host, python = self._given()
        self._say(tr("Asking {host} …", host=host or python or self.python.placeholderText()), "dim")
        self.work.begin(partial(_asked, host, python))
        self._allow()

    def _install(self) -> None:
        if self._report is not None:
            self._asked, self._is_installing = self._given(), True
            self._say(tr("Installing on {host}: {names}", host=self._report.host, names=_names(self._report)), "dim")
            self.log.clear()
            self.log.show()
            self.work.begin(partial(_installed, self._report))
            self._allow()

    def _answered(self) -> None:
        """Say what was found, and use it if that was waited for."""
        found, problem = self.work.found, self.work.problem
        was_using, was_installing = self._is_using, self._is_installing
        self._is_using = self._is_installing = False
        if was_installing and isinstance(found, HostReport):
            self.python.setText(found.python)  # the environment that was made there
        elif self._asked != self._given():
            self._allow()
            return  # the answer is about what was written before
        if was_installing and self.work.is_stopped:
            self._say(
                tr("The installation was cancelled. What was finished stays there; Install goes on with it."), "warn"
            )
        elif problem is not None:
            self._say(problem_text(problem), "bad")
        elif isinstance(found, HostReport):
            self._report = found
            self._say(*_words(found))
            if was_using and _is_fit(found) and not self.work.is_stopped:
                self._use_here()
        self._allow()

    # --- taking it over ---

    def _use(self) -> None:
        """Put a host into the recipe, and a Python of this machine into the settings, which is checked first."""
        host, python = self._given()
        if host:
            self._set_engine(host, python)
            self.accept()
        elif python and (self._report is None or not _is_fit(self._report)):
            self._is_using = True
            self._check()
        else:
            self._use_here()

    def _use_here(self) -> None:
        from ace_studio.jobs.hosts.check import python_here  # noqa: PLC0415 - loaded when it is needed

        self._set_engine("", "")
        python = python_here(self._given()[1])
        if python != self._settings.project_interpreter(self._folder) or not self._folder:
            with self._session.reporting():
                self._settings.choose_interpreter(self._folder, python)
        self.accept()

    def _set_engine(self, host: str, python: str) -> None:
        """What the recipe says of files stays as long as it names a host."""
        files = self._session.document.recipe.engine.files if host else ()
        self._session.choices.set_choice(
            "engine", tr("the machine of the engine"), host=host, python=python, files=files
        )


def _asked(host: str, python: str, _tell: Tell, started: Started) -> HostReport:
    from ace_studio.jobs.hosts.check import check_host  # noqa: PLC0415 - loaded when it is needed

    return check_host(host, python, started=started)


def _installed(report: HostReport, tell: Tell, started: Started) -> HostReport:
    """Install what is missing, and check the Python that has it."""
    from ace_studio.jobs.hosts.install import install_there  # noqa: PLC0415 - loaded when it is needed

    made = install_there(report.host, report.python, report.missing, tell, started=started)
    return _asked(report.host, made, tell, started)


def _names(report: HostReport) -> str:
    return ", ".join(report.missing)


def _is_fit(report: HostReport) -> bool:
    """Whether an engine can run in this Python; a full disk is reported and is no fault of it."""
    return not any(one.code is ErrorCode.NOT_INSTALLED for one in report.problems)


def _words(report: HostReport) -> tuple[str, str]:
    """What was found, and its role."""
    if report.problems:
        return "\n".join(problem_text(one) for one in report.problems), "bad" if not _is_fit(report) else "warn"
    text = tr(
        "An engine can run there: Python {python}, torch {torch}, {cores} cores, {free} free.",
        python=report.version,
        torch=report.packages.get("torch", ""),
        cores=report.cores,
        free=bytes_text(report.disk_free_bytes),
    )
    missing = (
        tr("{target} is missing: {line}", target=name, line=line) for name, line in report.targets.items() if line
    )
    return "\n".join([text, *missing]), "good"
