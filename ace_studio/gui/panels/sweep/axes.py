"""The table of axes: a line for each, with its values as the file of a sweep has them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QLineEdit, QWidget

from ace_studio.gui.style.language import told, tr
from ace_studio.gui.style.sizes import CLOSE, TIGHT
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.small import label, quiet, set_role, text_field, tip_text
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.sweep_file import axis_text, axis_values
from ace_studio.records.sweeps import Axis
from ace_studio.session.document import Document

_HINTS = {
    Axis.PLAN: ("fp32, int8-static", tr("Precisions, auto (the goal decides), or [plan] tables in braces")),
    Axis.GOAL: ("0.01, none", tr("The largest drop of the metric, none, or [goal] tables in braces")),
    Axis.TARGET: ("auto", tr("Targets, auto, or lists of targets in brackets")),
    Axis.THREADS: ("1, 2, all", tr("Numbers of threads to measure with")),
    Axis.SHAPE: ("x=1x3x32x32, x=8x3x32x32", tr("Shapes to trace and measure with; a list for several inputs")),
    Axis.DEVICE: ("cpu, cuda", tr("Where a run computes; or names of your devices, which measure its artifact")),
}


def _tip(axis: Axis) -> str:
    """What the values of an axis are, and an example, which a narrow field does not show whole."""
    example, meaning = _HINTS[axis]
    return f"{meaning}\n{example}"


class AxisTable(QWidget):
    """One line per axis: its name, its values, what can be added, and how many there are."""

    changed = Signal(object, object)
    """The axis and its new values."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[Axis, QLineEdit] = {}
        self.offers: dict[Axis, ComboBox] = {}
        self._counts: dict[Axis, QLabel] = {}
        self._shown: dict[Axis, str] = {}
        """What each field had when nobody was typing."""
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(CLOSE)
        grid.setVerticalSpacing(TIGHT)
        for at, axis in enumerate(Axis):
            field = self.fields[axis] = text_field(tr("Values of {axis}", axis=axis), _HINTS[axis][0])
            field.setToolTip(_tip(axis))
            field.setMinimumWidth(70)
            field.editingFinished.connect(partial(self._typed, axis))
            offer = self.offers[axis] = ComboBox(
                tr("Add a value to {axis}", axis=axis), chosen=partial(self._add, axis)
            )
            offer.setToolTip(tr("Add a value to {axis}", axis=axis))
            offer.setFixedWidth(offer.fontMetrics().horizontalAdvance(tr("Add")) + 48)
            count = self._counts[axis] = label("", "dim", wrap=False)
            count.setMinimumWidth(18)
            title = label(axis, wrap=False)
            title.setBuddy(field)
            for place, part in enumerate((title, field, offer, count)):
                grid.addWidget(part, at, place)
        grid.setColumnStretch(1, 1)
        self.setLayout(grid)

    def update_from(self, document: Document) -> None:
        """Show the axes, and offer the values that are not there yet."""
        axes, is_free = document.sweep.sweep.axes, not document.sweep.is_running
        for axis, field in self.fields.items():
            values = axes.get(axis, ())
            text = axis_text(values)
            if not field.hasFocus() or field.text() == self._shown.get(axis, ""):  # nobody is typing
                if field.text() != text:
                    field.setText(text)
                    field.setCursorPosition(0)
                self._shown[axis] = text
                set_role(field, "")
            field.setEnabled(is_free)
            offer, others = self.offers[axis], [one for one in _known(axis, document) if one not in axis_words(values)]
            with quiet(offer):
                offer.clear()
                offer.addItem(tr("Add"), "")
                for one in others:
                    offer.addItem(one, one)
            offer.setEnabled(is_free and bool(others))
            self._counts[axis].setText(str(len(values)) if values else "")

    def _typed(self, axis: Axis) -> None:
        field = self.fields[axis]
        if field.text() == self._shown.get(axis, ""):
            return
        try:
            values = axis_values(field.text())
        except AceError as error:
            set_role(field, "bad")
            field.setToolTip(tip_text(f"{told(error.problem.what)}: {told(error.problem.remedy)}"))
            return
        self._shown[axis] = field.text()
        field.setToolTip(_tip(axis))
        self.changed.emit(axis, values)

    def _add(self, axis: Axis) -> None:
        word = str(self.offers[axis].currentData() or "")
        if word:
            text = self.fields[axis].text().strip().rstrip(",")
            self.fields[axis].setText(f"{text}, {word}" if text else word)
            self._typed(axis)


def axis_words(values: tuple[object, ...]) -> set[str]:
    """The values as the offers have them."""
    return {str(value) for value in values}


def _known(axis: Axis, document: Document) -> Iterator[str]:
    """Values that are offered for an axis."""
    environment = document.environment
    match axis:
        case Axis.PLAN:
            yield from map(str, Precision)
            yield "auto"
        case Axis.GOAL:
            yield from ("none", "0.01", "0.02", "0.05")
        case Axis.TARGET:
            yield "auto"
            yield from (one.name for one in (environment.targets if environment else ()) if one.available)
        case Axis.THREADS:
            yield from ("1", "2", "4", "8", "all")
        case Axis.DEVICE:
            yield from ("cpu", "cuda")
        case Axis.SHAPE:
            yield from _shapes(document)


def _shapes(document: Document) -> Iterator[str]:
    """The first input of the first example with usual batch sizes; nothing for a model with several inputs."""
    rows = document.recipe.inputs.rows
    if rows and len(rows[0]) == 1:
        ((name, spec),) = rows[0].items()
        for batch in (1, 8, 32):
            yield f"{name}={'x'.join(map(str, (batch, *spec.shape[1:])))}"
