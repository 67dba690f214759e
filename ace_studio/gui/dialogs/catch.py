"""The dialog that catches inputs: which script to run, and which of its modules to record."""

import shlex
from pathlib import Path

from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QFileDialog,
    QHeaderView,
    QLayout,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.fields import WholeBox
from ace_studio.gui.widgets.layouts import GAP, MARGIN, TIGHT, column, row
from ace_studio.gui.widgets.small import button, fit_screen, label, text_field
from ace_studio.records.messages import InputsCaught
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_HEADINGS = (tr("Module"), tr("Class"), tr("Calls"), tr("Called with"))
_OUTERMOST = tr("(outermost)")
_INTRODUCTION = tr(
    "Runs a script of yours as Python would, and keeps the inputs of one of its modules as examples. "
    "A script is code: it runs only if you trust exactly that file."
)


class CatchDialog(QDialog):
    """A script, a module, and what the last run of the script called."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Catch inputs"))
        self.setProperty("help", "shapes#catching-examples-from-your-own-script")
        fit_screen(self, 640, 520)
        self._session = session
        self.script = text_field(tr("Script"), "train.py")
        self.arguments = text_field(tr("Arguments of the script"), "--epochs 1")
        self.module = text_field(tr("Module"), tr("empty: the outermost one"))
        self.calls = WholeBox(1, 10_000, accessibleName=tr("Calls to keep at most"))
        self.calls.setValue(8)
        self.start = button(tr("Run and catch"), self._catch, role="primary")
        self.start.setDefault(True)
        self.said = label("", "dim")
        self.modules = self._module_table()
        browse = row(self.script, button(tr("Browse…"), self._browse), stretch=0)
        self.setLayout(
            column(
                label(_INTRODUCTION, "dim"),
                _named(tr("Script"), browse, self.script),
                _named(tr("Arguments"), row(self.arguments), self.arguments),
                _named(tr("Module: a class or a dotted path"), row(self.module), self.module),
                _named(tr("Calls to keep at most"), row(self.calls, None), self.calls),
                row(self.start, self.said, None),
                self.modules,
                row(None, button(tr("Close"), self.accept)),
                margin=MARGIN,
                gap=GAP,
            )
        )
        self._unsubscribe = session.subscribe(self._follow)
        self.finished.connect(lambda _: self._unsubscribe())
        self._follow(session.document, frozenset(Part))

    def _module_table(self) -> QTableWidget:
        table = QTableWidget(0, len(_HEADINGS))
        table.setHorizontalHeaderLabels(list(_HEADINGS))
        table.setAccessibleName(tr("Modules that the script called"))
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setTabKeyNavigation(False)
        table.verticalHeader().hide()
        table.horizontalHeader().setSectionResizeMode(3, QHeaderView.ResizeMode.Stretch)
        table.itemSelectionChanged.connect(self._choose_module)
        return table

    def _browse(self) -> None:
        folder = str(Path(self.script.text() or self._session.document.folder))
        path, _ = QFileDialog.getOpenFileName(self, tr("A script that calls the model"), folder, tr("Python (*.py)"))
        if path:
            self.script.setText(path)

    def _catch(self) -> None:
        script = self.script.text().strip()
        if not script:
            self.said.setText(tr("Name a script first."))
            return
        try:
            arguments = shlex.split(self.arguments.text())
        except ValueError as error:
            self.said.setText(tr("The arguments cannot be read: {error}.", error=error))
            return
        path = Path(self._session.document.folder) / Path(script).expanduser()
        self._session.jobs.catch_inputs(path, self.module.text().strip(), calls=self.calls.value(), arguments=arguments)

    def _choose_module(self) -> None:
        items = self.modules.selectedItems()
        if items:
            path = items[0].text()
            self.module.setText("" if path == _OUTERMOST else path)

    def _follow(self, document: Document, parts: frozenset[Part]) -> None:
        if Part.ACTIVITY in parts:
            self.start.setEnabled(not document.activity.is_working)
        if Part.CAUGHT in parts and document.caught is not None:
            self._show(document.caught)

    def _show(self, caught: InputsCaught) -> None:
        self.said.setText(
            tr("Kept {kept} of {seen} calls of {module}.", kept=caught.kept, seen=caught.seen, module=caught.module)
        )
        self.modules.setRowCount(len(caught.modules))
        for at, one in enumerate(caught.modules):
            words = (one.path or _OUTERMOST, one.kind, str(one.calls), "; ".join(one.inputs))
            for place, text in enumerate(words):
                self.modules.setItem(at, place, QTableWidgetItem(text))


def _named(text: str, content: QLayout, buddy: QWidget) -> QLayout:
    name = label(text, "heading")
    name.setBuddy(buddy)
    return column(name, content, gap=TIGHT)
