"""The controls of the capture: how the tracer treats single functions, with a warning if a control had no effect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QStringListModel, Qt
from PySide6.QtWidgets import QCompleter, QLineEdit, QToolButton, QVBoxLayout, QWidget

from ace_studio.gui.style.icons import stroke_icon
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.small import ElidedLabel, button, clear_layout, column, label, row, set_role
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind
from ace_studio.records.results import Warning
from ace_studio.session.code_names import names_in
from ace_studio.session.document import Document
from ace_studio.session.session import Session

MEANINGS: dict[ControlKind, str] = {
    ControlKind.NONSTRICT_TRACE: "run the function while tracing instead of reading its code",
    ControlKind.ALLOW_IN_GRAPH: "put the call into the graph without looking inside",
    ControlKind.FX_WRAP: "fx records the call instead of making it",
    ControlKind.LEAF: "fx does not trace into modules of this class",
    ControlKind.DISABLE: "keep the tracer away from the function",
}
IDLE_CODE = "idle-control"


def offered_names(document: Document) -> list[str]:
    """Functions, methods and classes of the model's files, as controls name them."""
    texts = dict(document.sources)
    source = Path(document.folder) / document.recipe.model.source
    if str(source) not in texts and source.suffix == ".py":
        try:
            texts[str(source)] = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            texts.pop(str(source), None)
    return sorted({name.control_name(path) for path, text in texts.items() for name in names_in(text)})


def idle_words(control: CaptureControl, warnings: Sequence[Warning]) -> str:
    """The warning that a control had no effect; empty without one."""
    title = f"{control.function} as {control.treat_as}"
    return next((one.what for one in warnings if one.code == IDLE_CODE and title in one.what), "")


class ControlsEditor(QWidget):
    """A line per control, and a line to add one."""

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start without controls."""
        super().__init__()
        self._session, self._theme = session, theme
        self._shown: tuple[object, ...] = ()
        self._texts: object = None
        self._lines = QVBoxLayout()
        self._lines.setSpacing(4)
        self.function = QLineEdit()
        self.function.setPlaceholderText("model:function")
        self.function.setAccessibleName("Function or class of the new control")
        self.function.setToolTip("module:function, or module:Class.method; names of your files are offered")
        self.function.setClearButtonEnabled(True)
        self._names = QStringListModel(self)
        completer = QCompleter(self._names, self)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self.function.setCompleter(completer)
        self.function.textChanged.connect(lambda _: self._show_addable())
        self.function.returnPressed.connect(self.add)
        self.kind = ComboBox()
        self.kind.setAccessibleName("How to treat it")
        for kind, meaning in MEANINGS.items():
            self.kind.addItem(str(kind), kind)
            self.kind.setItemData(self.kind.count() - 1, meaning, Qt.ItemDataRole.ToolTipRole)
        self.kind.currentIndexChanged.connect(lambda _: self._show_meaning())
        self.add_button = button("Add", self.add)
        self._meaning = label("", "dim")
        entry = row(self.function, self.kind, self.add_button, gap=6)
        entry.setStretch(0, 1)
        self.setLayout(column(self._lines, entry, self._meaning, gap=6))
        self._show_meaning()
        self._show_addable()

    def update_from(self, document: Document) -> None:
        """Show the controls and their warnings."""
        warnings = document.capture.warnings if document.capture else ()
        shown = (document.recipe.capture.controls, warnings, self._theme.colours)
        if shown != self._shown:
            self._shown = shown
            self._fill(document.recipe.capture.controls, warnings)
        texts = (document.sources, document.recipe.model.source, document.folder)
        if texts != self._texts:
            self._texts = texts
            self._names.setStringList(offered_names(document))

    def _fill(self, controls: Sequence[CaptureControl], warnings: Sequence[Warning]) -> None:
        clear_layout(self._lines)
        if not controls:
            text = "No controls yet. A control tells the tracer how to treat one function or module class."
            self._lines.addWidget(label(text, "dim"))
        for at, control in enumerate(controls):
            self._lines.addWidget(self._line(at, control, idle_words(control, warnings)))

    def _line(self, at: int, control: CaptureControl, idle: str) -> QWidget:
        colours = self._theme.colours
        name = ElidedLabel(control.function, mode=Qt.TextElideMode.ElideLeft)
        name.setProperty("weight", "strong")
        kind = label(str(control.treat_as), "dim", wrap=False)
        kind.setToolTip(MEANINGS[control.treat_as])
        remove = QToolButton()
        remove.setAutoRaise(True)
        remove.setIcon(stroke_icon("close", colours.text_dim, colours.text_dim))
        remove.setToolTip("Remove this control")
        remove.setAccessibleName(f"Remove {control.treat_as} for {control.function}")
        remove.clicked.connect(lambda _=False: self._session.choices.remove_control(at))
        line = row(name, kind, remove, gap=8)
        line.setStretch(0, 1)
        made = QWidget()
        parts = column(gap=0)
        parts.addLayout(line)
        if idle:
            parts.addWidget(label(f"⚠ {idle}", "warn"))
        made.setLayout(parts)
        made.setAccessibleName(f"{control.function} as {control.treat_as}. {idle}")
        return made

    def add(self) -> None:
        """Add the control, if a function is named."""
        name = self.function.text().strip()
        set_role(self.function, "" if name else "bad")
        if name:
            self._session.choices.add_control(CaptureControl(function=name, treat_as=self.kind.currentData()))
            self.function.clear()

    def _show_meaning(self) -> None:
        self._meaning.setText(f"{self.kind.currentText()}: {MEANINGS[self.kind.currentData()]}.")

    def _show_addable(self) -> None:
        has_name = bool(self.function.text().strip())
        self.add_button.setEnabled(has_name)
        self.add_button.setToolTip("" if has_name else "Name a function first")
        set_role(self.function, "")
