"""The editors that forms are made of, one function per kind of key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from ace_studio.gui.panels.plan.choice_box import ChoiceBox
from ace_studio.gui.panels.plan.field_row import FieldKind, FieldRow
from ace_studio.gui.panels.plan.typed_text import TEXT_FORMS
from ace_studio.gui.widgets.fields import ComboBox, DecimalBox, WholeBox
from ace_studio.gui.widgets.small import column, fill_combo, label, quiet, row, set_role
from ace_studio.session.document import Document


class Form(Protocol):
    """Signals of an editor."""

    def choose(self, field: FieldRow, value: object) -> None:
        """A value was chosen."""

    def complain(self, field: FieldRow, words: str) -> None:
        """Why the typed text is invalid (the recipe keeps its value); empty when it is valid again."""

    def is_wrong(self, field: FieldRow) -> bool:
        """Whether the editor holds invalid text."""

    def browse(self, field: FieldRow) -> None:
        """Asks for a file."""


@dataclass(frozen=True, kw_only=True)
class Editor:
    """One editor of a form."""

    widget: QWidget
    show: Callable[[Any, Document], None]
    """Show a value of the recipe without a signal."""
    above: bool = False
    """Whether it spans the form and shows its own name."""
    meaning: Callable[[], str] = lambda: ""
    """What the present value means, for the line below."""


def _choice(form: Form, field: FieldRow) -> Editor:
    box = ChoiceBox(field.options, lambda word: form.choose(field, word))
    return Editor(widget=box, show=lambda value, _: box.show_choice(str(value)), meaning=box.meaning)


def _number(form: Form, field: FieldRow) -> Editor:
    box = DecimalBox()
    box.setDecimals(field.decimals)
    box.setSingleStep(10.0 ** -min(field.decimals, 2))
    return _spin(form, field, box)


def _count(form: Form, field: FieldRow) -> Editor:
    return _spin(form, field, WholeBox())


def _spin(form: Form, field: FieldRow, box: Any) -> Editor:
    box.setMinimumWidth(90)
    box.setRange(type(box.minimum())(field.low), type(box.maximum())(field.high))
    box.setSuffix(field.suffix)
    box.setSpecialValueText(field.unset)
    box.setKeyboardTracking(False)

    def choose(value: float) -> None:
        form.choose(field, None if field.unset and value == box.minimum() else value)

    def show(value: float | None, _: Document) -> None:
        with quiet(box):
            box.setValue(box.minimum() if value is None else value)

    box.valueChanged.connect(choose)
    return Editor(widget=box, show=show)


def _flag(form: Form, field: FieldRow) -> Editor:
    box = QCheckBox(field.text)
    box.toggled.connect(lambda on: form.choose(field, on))

    def show(value: bool, _: Document) -> None:
        with quiet(box):
            box.setChecked(value)

    return Editor(widget=box, show=show, above=True)


def _typed(form: Form, field: FieldRow) -> Editor:
    """A line of text that stands for a value; invalid text stays, with the reason below."""
    line, text_form = QLineEdit(), TEXT_FORMS[field.kind]
    line.setPlaceholderText(field.unset)

    def finished() -> None:
        try:
            value = text_form.read(line.text())
        except ValueError as error:
            form.complain(field, str(error))
        else:
            form.complain(field, "")
            form.choose(field, value)
        set_role(line, "bad" if form.is_wrong(field) else "")

    def show(value: Any, _: Document) -> None:
        if not line.hasFocus() and not form.is_wrong(field):
            line.setText(text_form.write(value))
            set_role(line, "")

    line.editingFinished.connect(finished)
    return Editor(widget=line, show=show)


def _ticks(form: Form, field: FieldRow) -> Editor:
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


def _named(form: Form, field: FieldRow) -> Editor:
    """A name that can be typed or chosen from the known ones."""
    combo = ComboBox()
    combo.setEditable(True)
    combo.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
    combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    combo.setMinimumContentsLength(4)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.setAccessibleName(f"{field.table}: {field.text}")
    combo.activated.connect(lambda at: form.choose(field, str(combo.itemData(at) or "")))
    line = combo.lineEdit()
    if line is not None:
        line.editingFinished.connect(lambda: _name_typed(form, field, combo))
    browse = QToolButton()
    browse.setText("…")
    browse.setProperty("role", "plain")
    browse.setToolTip("Choose a file")
    browse.setAccessibleName(f"{field.text}: choose a file")
    browse.clicked.connect(lambda: form.browse(field))
    holder = QWidget()
    holder.setLayout(row(combo, browse, gap=4))
    browse.setVisible(field.takes_file)  # not before it has a parent: it would be a window
    holder.setFocusProxy(combo)

    def show(value: str, document: Document) -> None:
        if line is not None and line.hasFocus() and line.isModified():
            return
        fill_combo(combo, [(field.unset, ""), *field.known(document)], value or "")
        if line is not None and not line.hasFocus():
            line.setCursorPosition(0)

    return Editor(widget=holder, show=show)


def _name_typed(form: Form, field: FieldRow, combo: QComboBox) -> None:
    text = combo.currentText().strip()
    at = combo.findText(text)
    form.choose(field, str(combo.itemData(at) or "") if at >= 0 else text.removesuffix("()"))


EDITORS: dict[FieldKind, Callable[[Form, FieldRow], Editor]] = {
    FieldKind.CHOICE: _choice,
    FieldKind.NUMBER: _number,
    FieldKind.COUNT: _count,
    FieldKind.FLAG: _flag,
    FieldKind.WORDS: _typed,
    FieldKind.TEXT: _typed,
    FieldKind.COUNTS: _typed,
    FieldKind.PAIRS: _typed,
    FieldKind.TICKS: _ticks,
    FieldKind.NAME: _named,
}
"""Kind -> function that makes its editor."""
