"""A form made of `FieldRow`s: an editor per row, grey with its reason where it does not apply."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QGridLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QSpinBox,
    QToolButton,
    QWidget,
)

from ace_studio.gui.plan_form.field_rows import FieldKind, FieldRow
from ace_studio.gui.widgets import column, fill_combo, inset, label, quiet, row
from ace_studio.records.recipe import Recipe
from ace_studio.session.document import Document
from ace_studio.session.recipe_paths import relative_to
from ace_studio.session.session import Session

DATA_FILES = "Data (*.npz *.npy *.safetensors *.pt *.pth);;All files (*)"


def is_in_recipe(field: FieldRow) -> bool:
    """Whether recipes have this key."""
    table = getattr(Recipe(), field.table, None)
    return table is not None and field.key in table.__struct_fields__


def typed_value(field: FieldRow, value: object) -> Any:
    """A value of an editor as the recipe's record wants it: a word becomes a member of its enumeration."""
    record = type(getattr(Recipe(), field.table))
    return msgspec.convert(value, typing.get_type_hints(record)[field.key], strict=False)


def summary_of(fields: Iterable[FieldRow], document: Document) -> str:
    """What differs from the defaults, in words."""
    usual, found = Recipe(), []
    for field in filter(is_in_recipe, fields):
        value = getattr(getattr(document.recipe, field.table), field.key)
        if value != getattr(getattr(usual, field.table), field.key) and not field.why_grey(document):
            found.append(", ".join(map(str, value)) if isinstance(value, tuple) else f"{value}{field.suffix}")
    return ", ".join(found)


@dataclass(frozen=True, kw_only=True)
class Editor:
    """One editor of a form."""

    widget: QWidget
    show: Callable[[Any, Document], None]
    """Show a value of the recipe without a signal."""
    above: bool = False
    """It needs the whole width: its name stands above it."""


class RecordForm(QWidget):
    """Rows of one or more tables of the recipe. Keys that recipes do not have are left out."""

    def __init__(self, session: Session, fields: Iterable[FieldRow]) -> None:
        """Build an editor per row."""
        super().__init__()
        self._session = session
        self.fields = tuple(field for field in fields if is_in_recipe(field))
        self.editors: dict[str, QWidget] = {}
        self._shows: dict[str, Callable[[Any, Document], None]] = {}
        self._names: dict[str, QLabel] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setColumnStretch(1, 1)
        grid.setVerticalSpacing(6)
        for at, field in enumerate(self.fields):
            made = _MAKERS[field.kind](self, field)
            name = self._names[field.name] = QLabel(field.text)
            name.setBuddy(made.widget)
            made.widget.setAccessibleName(f"{field.table}: {field.text}")
            if made.above:
                grid.addWidget(made.widget, at, 0, 1, 2)
                name.hide()
            else:
                grid.addWidget(name, at, 0)
                grid.addWidget(made.widget, at, 1)
            self.editors[field.name], self._shows[field.name] = made.widget, made.show
        self._reason = label("", "dim")
        grid.addWidget(self._reason, len(self.fields), 0, 1, 2)

    def update_from(self, document: Document) -> None:
        """Show the values, and what cannot be chosen now."""
        reasons: list[str] = []
        for field in self.fields:
            widget = self.editors[field.name]
            why = field.why_grey(document)
            self._shows[field.name](getattr(getattr(document.recipe, field.table), field.key), document)
            widget.setEnabled(not why)
            widget.setToolTip(why or field.tip)
            self._names[field.name].setEnabled(not why)
            self._names[field.name].setToolTip(why or field.tip)
            if why and why not in reasons:
                reasons.append(why)
        self._reason.setText(reasons[0] if len(reasons) == 1 else "")
        self._reason.setVisible(len(reasons) == 1)

    def choose(self, field: FieldRow, value: object) -> None:
        """A gesture chose a value."""
        wanted = typed_value(field, value)
        if wanted != getattr(getattr(self._session.document.recipe, field.table), field.key):
            words = f"{field.table}: {field.text.lower()}"
            self._session.set_choice(field.table, words, **{field.key: wanted})

    def browse(self, field: FieldRow) -> None:
        """Ask for a file."""
        folder = self._session.document.folder
        path, _ = QFileDialog.getOpenFileName(self, field.text, folder, DATA_FILES)
        if path:
            self.choose(field, relative_to(Path(path), Path(folder)))


def _choice(form: RecordForm, field: FieldRow) -> Editor:
    combo = QComboBox()
    combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    combo.setMinimumContentsLength(4)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    options = [(f"{value}: {words}" if value else words, value) for value, words in field.options]
    combo.activated.connect(lambda at: form.choose(field, combo.itemData(at)))
    return Editor(widget=combo, show=lambda value, _: fill_combo(combo, options, str(value)))


def _number(form: RecordForm, field: FieldRow) -> Editor:
    box = QDoubleSpinBox()
    box.setDecimals(field.decimals)
    box.setSingleStep(10.0 ** -min(field.decimals, 2))
    return _spin(form, field, box)


def _count(form: RecordForm, field: FieldRow) -> Editor:
    return _spin(form, field, QSpinBox())


def _spin(form: RecordForm, field: FieldRow, box: Any) -> Editor:
    box.setMinimumWidth(90)
    box.setRange(type(box.minimum())(field.low), type(box.maximum())(field.high))
    box.setSuffix(field.suffix)
    box.setSpecialValueText(field.unset)
    box.setKeyboardTracking(False)
    inset(box)

    def choose(value: float) -> None:
        form.choose(field, None if field.unset and value == box.minimum() else value)

    def show(value: float | None, _: Document) -> None:
        with quiet(box):
            box.setValue(box.minimum() if value is None else value)

    box.valueChanged.connect(choose)
    return Editor(widget=box, show=show)


def _flag(form: RecordForm, field: FieldRow) -> Editor:
    box = QCheckBox()
    box.toggled.connect(lambda on: form.choose(field, on))

    def show(value: bool, _: Document) -> None:
        with quiet(box):
            box.setChecked(value)

    return Editor(widget=box, show=show)


def _words(form: RecordForm, field: FieldRow) -> Editor:
    line = QLineEdit()
    line.setPlaceholderText(field.unset)
    line.editingFinished.connect(
        lambda: form.choose(field, tuple(word.strip() for word in line.text().split(",") if word.strip()))
    )

    def show(value: Iterable[str], _: Document) -> None:
        if not line.hasFocus():
            line.setText(", ".join(value))

    return Editor(widget=line, show=show)


def _text(form: RecordForm, field: FieldRow) -> Editor:
    line = QLineEdit()
    line.setPlaceholderText(field.unset)
    line.editingFinished.connect(lambda: form.choose(field, line.text().strip()))

    def show(value: str, _: Document) -> None:
        if not line.hasFocus():
            line.setText(value)

    return Editor(widget=line, show=show)


def _ticks(form: RecordForm, field: FieldRow) -> Editor:
    boxes: Mapping[str, QCheckBox] = {value: QCheckBox(value) for value, _ in field.options}
    holder = QWidget()
    layout = column(gap=4)
    for value, words in field.options:
        boxes[value].setToolTip(words)
        boxes[value].toggled.connect(
            lambda _: form.choose(field, tuple(name for name, box in boxes.items() if box.isChecked()))
        )
        about = label(words, "dim")
        about.setIndent(24)
        layout.addWidget(boxes[value])
        layout.addWidget(about)
    holder.setLayout(layout)

    def show(value: Iterable[str], _: Document) -> None:
        chosen = {str(one) for one in value}
        with quiet(*boxes.values()):
            for name, box in boxes.items():
                box.setChecked(name in chosen)

    return Editor(widget=holder, show=show, above=True)


def _callable(form: RecordForm, field: FieldRow) -> Editor:
    combo = QComboBox()
    combo.setEditable(True)
    combo.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
    combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    combo.setMinimumContentsLength(4)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.setAccessibleName(f"{field.table}: {field.text}")
    combo.activated.connect(lambda at: form.choose(field, str(combo.itemData(at) or "")))
    line = combo.lineEdit()
    if line is not None:
        line.editingFinished.connect(lambda: _typed(form, field, combo))
    browse = QToolButton()
    browse.setText("…")
    browse.setProperty("role", "plain")
    browse.setToolTip("Choose a file")
    browse.setAccessibleName(f"{field.text}: choose a file")
    browse.clicked.connect(lambda: form.browse(field))
    browse.setVisible(field.takes_file)
    holder = QWidget()
    holder.setLayout(row(combo, browse, gap=4))
    holder.setFocusProxy(combo)

    def show(value: str, document: Document) -> None:
        entries = document.file.entries if document.file else ()
        functions = [(f"{one.name}()", one.name) for one in entries if one.kind == "function"]
        fill_combo(combo, [(field.unset, ""), *functions], value or "")
        if line is not None and not line.hasFocus():
            line.setCursorPosition(0)

    return Editor(widget=holder, show=show)


def _typed(form: RecordForm, field: FieldRow, combo: QComboBox) -> None:
    text = combo.currentText().strip()
    at = combo.findText(text)
    form.choose(field, str(combo.itemData(at) or "") if at >= 0 else text.removesuffix("()"))


_MAKERS: dict[FieldKind, Callable[[RecordForm, FieldRow], Editor]] = {
    FieldKind.CHOICE: _choice,
    FieldKind.NUMBER: _number,
    FieldKind.COUNT: _count,
    FieldKind.FLAG: _flag,
    FieldKind.WORDS: _words,
    FieldKind.TEXT: _text,
    FieldKind.TICKS: _ticks,
    FieldKind.CALLABLE: _callable,
}
