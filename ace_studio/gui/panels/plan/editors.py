"""The editors that forms are made of, one function per kind of key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6 import QtWidgets
from PySide6.QtCore import Qt

from ace_studio.gui.panels.plan.field_rows import FieldKind, FieldRow
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.fields import ComboBox, DecimalBox, NameBox, WholeBox
from ace_studio.gui.widgets.layouts import TIGHT, box, column, row
from ace_studio.gui.widgets.small import fill_combo, label, quiet, set_role
from ace_studio.gui.widgets.table_model import AnyIndex
from ace_studio.session.document import Document

if TYPE_CHECKING:
    from ace_studio.gui.panels.plan.record_form import RecordForm


@dataclass(frozen=True, kw_only=True)
class Editor:
    """One editor of a form."""

    widget: QtWidgets.QWidget
    show: Callable[[Any, Document], None]
    """Show a value of the recipe without a signal."""
    above: bool = False
    """Whether it spans the form and shows its own name."""
    meaning: Callable[[], str] = lambda: ""
    """What the present value means, for the line below."""


def _choice(form: RecordForm, field: FieldRow) -> Editor:
    box = ChoiceBox(field.options, lambda word: form.choose(field, word))
    return Editor(widget=box, show=lambda value, _: box.show_choice(str(value)), meaning=box.meaning)


def _number(form: RecordForm, field: FieldRow) -> Editor:
    box = DecimalBox(decimals=field.decimals, singleStep=10.0 ** -min(field.decimals, 2))
    return _spin(form, field, box)


def _count(form: RecordForm, field: FieldRow) -> Editor:
    return _spin(form, field, WholeBox())


def _spin(form: RecordForm, field: FieldRow, box: Any) -> Editor:
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


def _flag(form: RecordForm, field: FieldRow) -> Editor:
    box = QtWidgets.QCheckBox(field.text)
    box.toggled.connect(lambda on: form.choose(field, on))

    def show(value: bool, _: Document) -> None:
        with quiet(box):
            box.setChecked(value)

    return Editor(widget=box, show=show, above=True)


def _typed(form: RecordForm, field: FieldRow) -> Editor:
    """A line of text that stands for a value; invalid text stays, with the reason below."""
    line, text_form = QtWidgets.QLineEdit(), TEXT_FORMS[field.kind]
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


def _ticks(form: RecordForm, field: FieldRow) -> Editor:
    boxes: Mapping[str, QtWidgets.QCheckBox] = {value: QtWidgets.QCheckBox(value) for value, _ in field.options}
    holder = QtWidgets.QWidget()
    layout = column(gap=TIGHT)
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


def _named(form: RecordForm, field: FieldRow) -> Editor:
    """A name that can be typed or chosen from the known ones."""
    combo = NameBox(f"{field.table}: {field.text}", partial(form.choose, field))
    combo.setMinimumContentsLength(4)
    combo.setSizeAdjustPolicy(QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    line = combo.line
    browse = QtWidgets.QToolButton()
    browse.setText("…")
    browse.setProperty("role", "plain")
    browse.setToolTip(tr("Choose a file"))
    browse.setAccessibleName(tr("{text}: choose a file", text=field.text))
    browse.clicked.connect(lambda: form.browse(field))
    holder = box(row(combo, browse, gap=TIGHT))
    browse.setVisible(field.takes_file)  # not before it has a parent: it would be a window
    holder.setFocusProxy(combo)

    def show(value: str, document: Document) -> None:
        if line.hasFocus() and line.isModified():
            return
        fill_combo(combo, [(field.unset, ""), *field.known(document)], value or "")
        if not line.hasFocus():
            line.setCursorPosition(0)

    return Editor(widget=holder, show=show)


EDITORS: dict[FieldKind, Callable[[RecordForm, FieldRow], Editor]] = {
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


_WHOLE = int(Qt.ItemDataRole.AccessibleTextRole)
_POPUP_MARGIN = 36
"""Frame, padding and scroll bar of the open list."""


class ChoiceBox(ComboBox):
    """A combo box of words and their meanings."""

    def __init__(self, options: Sequence[tuple[str, str]], choose: Callable[[str], object]) -> None:
        """Offer them.

        Args:
            options: Word and meaning; an empty word is shown as its meaning.
            choose: Gets the word.
        """
        super().__init__()
        self._options = tuple(options)
        self._meanings: Mapping[str, str] = {word: meaning for word, meaning in options if word}
        self.setSizePolicy(QtWidgets.QSizePolicy.Policy.Expanding, QtWidgets.QSizePolicy.Policy.Fixed)
        self.setMinimumContentsLength(4)
        self.setSizeAdjustPolicy(QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setItemDelegate(_WholeWords(self))
        self.activated.connect(lambda at: choose(str(self.itemData(at))))

    def show_choice(self, word: str) -> None:
        """Choose a word without a signal. One that is not offered is added."""
        fill_combo(self, [(one or meaning, one) for one, meaning in self._options], word)
        for at in range(self.count()):
            self.setItemData(at, self._whole(self.itemText(at), str(self.itemData(at))), _WHOLE)

    def meaning(self) -> str:
        """What the chosen word means; may be empty."""
        return self._meanings.get(str(self.currentData()), "")

    def showPopup(self) -> None:  # noqa: N802 - Qt's name
        """Open the list as wide as its longest row."""
        self.fit_list()
        super().showPopup()

    def fit_list(self) -> None:
        """Set the width of the open list to that of its longest row."""
        rows = (str(self.itemData(at, _WHOLE)) for at in range(self.count()))
        widest = max((self.fontMetrics().horizontalAdvance(text) for text in rows), default=0)
        self.view().setMinimumWidth(widest + _POPUP_MARGIN)

    def _whole(self, text: str, word: str) -> str:
        meaning = self._meanings.get(word, "")
        return f"{text}: {meaning}" if meaning else text


class _WholeWords(QtWidgets.QStyledItemDelegate):
    """Paints rows of the open list with their meaning."""

    def __init__(self, parent: QtWidgets.QWidget) -> None:
        super().__init__(parent)

    def initStyleOption(self, option: QtWidgets.QStyleOptionViewItem, index: AnyIndex) -> None:  # noqa: N802 - Qt's name
        """Show word and meaning instead of the word alone."""
        super().initStyleOption(option, index)
        whole = index.data(_WHOLE)
        if whole:
            option.text = str(whole)


@dataclass(frozen=True, kw_only=True)
class TextForm:
    """How one kind of value is read and written."""

    read: Callable[[str], Any]
    """Raises ValueError with the text for the line below."""
    write: Callable[[Any], str]


def read_words(text: str) -> tuple[str, ...]:
    """``a, b`` -> words; empty ones are left out."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def read_counts(text: str) -> tuple[int, ...]:
    """``1, 8, 32`` -> whole numbers from 1 on, each once.

    Raises: ValueError naming the first word that is none.
    """
    found: list[int] = []
    for word in read_words(text):
        if not (word.isascii() and word.isdigit() and int(word) >= 1):
            raise ValueError(tr("'{word}' is not a whole number from 1 on. Write for example 1, 8, 32.", word=word))
        found.append(int(word))
    return tuple(dict.fromkeys(found))


def read_pairs(text: str) -> dict[str, str]:
    """``cache = 1, mask = 2`` -> input and the output that it gets.

    Raises: ValueError naming the first part that is no pair, or an input that stands twice.
    """
    found: dict[str, str] = {}
    for part in read_words(text):
        name, sign, value = (word.strip() for word in part.partition("="))
        if not (name and sign and value):
            raise ValueError(tr("'{part}' is not a pair. Write an input and its output: cache = 1.", part=part))
        if name in found:
            raise ValueError(tr("'{name}' appears twice. An input gets one output.", name=name))
        found[name] = value
    return found


def write_list(value: Iterable[object]) -> str:
    """Values with commas between them."""
    return ", ".join(map(str, value))


def write_pairs(value: Mapping[str, str]) -> str:
    """Write pairs as `read_pairs` reads them."""
    return ", ".join(f"{name} = {output}" for name, output in value.items())


TEXT_FORMS: dict[FieldKind, TextForm] = {
    FieldKind.TEXT: TextForm(read=str.strip, write=str),
    FieldKind.WORDS: TextForm(read=read_words, write=write_list),
    FieldKind.COUNTS: TextForm(read=read_counts, write=write_list),
    FieldKind.PAIRS: TextForm(read=read_pairs, write=write_pairs),
}
"""Kind of field -> how its text is read and written."""
