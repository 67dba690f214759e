"""A form made of `FieldRow`s: an editor per row, and below it what the value means, or why it is disabled or wrong."""

import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtWidgets import QFileDialog, QGridLayout, QLabel, QWidget

from ace_studio.gui.panels.plan.editors import EDITORS, Editor
from ace_studio.gui.panels.plan.field_rows import FieldRow
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import GAP, HAIR
from ace_studio.gui.widgets.small import label, show_words
from ace_studio.records.recipes.paths import relative_to
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.session.choices import table_of
from ace_studio.session.document import Document
from ace_studio.session.session import Session

_DATA_FILES = "Data (*.npz *.npy *.safetensors *.pt *.pth);;All files (*)"


def is_in_recipe(field: FieldRow) -> bool:
    """Whether recipes have this key."""
    table = table_of(Recipe(), field.table)
    return table is not None and field.key in table.__struct_fields__


def typed_value(field: FieldRow, value: object) -> Any:
    """A value of an editor in the type of the recipe's field: a word becomes a member of its enumeration."""
    record = type(table_of(Recipe(), field.table))
    return msgspec.convert(value, typing.get_type_hints(record)[field.key], strict=False)


def value_of(field: FieldRow, recipe: Recipe) -> Any:
    """The recipe's value of a key."""
    return getattr(table_of(recipe, field.table), field.key)


def summary_of(fields: Iterable[FieldRow], document: Document) -> str:
    """The choices that differ from the defaults, in words."""
    usual, found = Recipe(), []
    for field in filter(is_in_recipe, fields):
        value = value_of(field, document.recipe)
        if value != value_of(field, usual) and not field.why_grey(document):
            found.append(_in_words(field, value))
    return ", ".join(found)


def _in_words(field: FieldRow, value: object) -> str:
    if isinstance(value, bool):
        return field.text if value else tr("{name}: no", name=field.text)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {output}" for name, output in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple) else f"{value}{field.suffix}"


@dataclass(frozen=True, kw_only=True)
class _Complaint:
    """Why the text in an editor is invalid, and the recipe's value when it was typed."""

    words: str
    recipe_value: object
    source: str


class RecordForm(QWidget):
    """Rows of one or more tables of the recipe. Keys that recipes do not have are left out."""

    def __init__(self, session: Session, fields: Iterable[FieldRow]) -> None:
        super().__init__()
        self._session = session
        self.fields = tuple(field for field in fields if is_in_recipe(field))
        self.editors: dict[str, QWidget] = {}
        self.notes: dict[str, QLabel] = {}
        """The line below each editor."""
        self._made: dict[str, Editor] = {}
        self._names: dict[str, QLabel] = {}
        self._complaints: dict[str, _Complaint] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setColumnStretch(1, 1)
        grid.setVerticalSpacing(HAIR)
        for at, field in enumerate(self.fields):
            self._add(field, grid, 3 * at)
            grid.setRowMinimumHeight(3 * at + 2, GAP // 2)

    def _add(self, field: FieldRow, grid: QGridLayout, at: int) -> None:
        made = EDITORS[field.kind](self, field)
        name = self._names[field.name] = QLabel(field.text)
        note = self.notes[field.name] = label("", "dim")
        name.setBuddy(made.widget)
        made.widget.setAccessibleName(f"{field.table}: {field.text}")
        if made.above:
            grid.addWidget(made.widget, at, 0, 1, 2)
            grid.addWidget(note, at + 1, 0, 1, 2)
            name.hide()
        else:
            grid.addWidget(name, at, 0)
            grid.addWidget(made.widget, at, 1)
            grid.addWidget(note, at + 1, 1)
        self.editors[field.name], self._made[field.name] = made.widget, made

    def update_from(self, document: Document) -> None:
        """Show the values, their meaning, and what cannot be edited now."""
        self._forget_complaints(document)
        above = ""
        for field in self.fields:
            widget, made = self.editors[field.name], self._made[field.name]
            why = tr(field.why_grey(document))
            made.show(value_of(field, document.recipe), document)
            for part in (widget, self._names[field.name]):
                part.setEnabled(not why)
                part.setToolTip(why or field.tip)
            self._say(field, made, document, why="" if why == above else why, is_grey=bool(why))
            above = why

    def _say(self, field: FieldRow, made: Editor, document: Document, *, why: str, is_grey: bool) -> None:
        """The line below an editor. A reason shared by several rows in a row stands below the first."""
        note = self.notes[field.name]
        words, role = why, "dim"
        if not is_grey:
            complaint = self._complaints.get(field.name)
            wrong = complaint.words if complaint else ""
            warning = wrong or tr(field.problem(document))
            role = "bad" if wrong else "warn" if warning else "dim"
            words = warning or made.meaning() or field.about
        show_words(note, words, role)
        self.editors[field.name].setAccessibleDescription(words or field.tip)

    # --- signals of the editors ---

    def choose(self, field: FieldRow, value: object) -> None:
        """Put a value that the user chose into the recipe."""
        wanted = typed_value(field, value)
        if wanted != value_of(field, self._session.document.recipe):
            words = f"{field.table.rpartition('.')[2]}: {field.text.lower()}"
            self._session.choices.set_choice(field.table, words, **{field.key: wanted})

    def complain(self, field: FieldRow, words: str) -> None:
        """Show below the editor why its text is invalid; empty words mean that it is valid."""
        document = self._session.document
        if words:
            value = value_of(field, document.recipe)
            self._complaints[field.name] = _Complaint(words=words, recipe_value=value, source=_source(document))
        else:
            self._complaints.pop(field.name, None)
        self.update_from(document)

    def is_wrong(self, field: FieldRow) -> bool:
        """Whether the editor holds invalid text."""
        return field.name in self._complaints

    def browse(self, field: FieldRow) -> None:
        """Ask for a file."""
        folder = self._session.document.folder
        path, _ = QFileDialog.getOpenFileName(self, field.text, folder, _DATA_FILES)
        if path:
            self.choose(field, relative_to(Path(path), Path(folder)))

    def _forget_complaints(self, document: Document) -> None:
        """Drop invalid text that was typed for another model or another value."""
        for field in self.fields:
            one = self._complaints.get(field.name)
            if one and (one.source, one.recipe_value) != (_source(document), value_of(field, document.recipe)):
                del self._complaints[field.name]


def _source(document: Document) -> str:
    return f"{document.folder}/{document.recipe.model.source}"
