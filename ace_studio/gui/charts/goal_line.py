"""The bound of one axis beside the trade-off: a box that switches it, and its number."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtWidgets import QCheckBox, QWidget

from ace_studio.gui.widgets.fields import DecimalBox
from ace_studio.gui.widgets.small import quiet, row
from ace_studio.gui.words.goal_bounds import BOUNDS, BoundRow
from ace_studio.session.session import Session


class GoalLine(QWidget):
    """The bound of one axis beside the plot: a box that switches it, and its number."""

    def __init__(self, session: Session) -> None:
        """Start without an axis."""
        super().__init__()
        self._session = session
        self._start: float | None = None
        self.bound: BoundRow = BOUNDS[0]
        self.check = QCheckBox()
        self.number = DecimalBox()
        self.number.setKeyboardTracking(False)
        self.number.setMaximumWidth(130)
        self.check.toggled.connect(self._toggle)
        self.number.valueChanged.connect(self._set)
        self.setLayout(row(self.check, self.number, gap=6))

    def show_bound(self, bound: BoundRow, value: float | None, *, start: float | None) -> None:
        """Show another bound or value; ``start`` is its first value when it is switched on."""
        self.bound, self._start = bound, start
        with quiet(self.check, self.number):
            self.check.setText(bound.text.rpartition(" at ")[1].strip() + " " + bound.text.rpartition(" ")[2])
            self.check.setAccessibleName(bound.text)
            self.check.setToolTip(bound.text + (f". {bound.tip}" if bound.tip else ""))
            self.check.setChecked(value is not None)
            self.number.setAccessibleName(bound.text)
            self.number.setDecimals(bound.decimals)
            self.number.setSuffix(bound.suffix)
            self.number.setRange(bound.low, bound.high)
            self.number.setSingleStep(10 ** -min(1, bound.decimals))
            self.number.setEnabled(value is not None)
            usual = bound.start if start is None else start * bound.scale
            self.number.setValue(usual if value is None else value * bound.scale)

    def _toggle(self, is_on: bool) -> None:
        start = self.bound.start / self.bound.scale if self._start is None else self._start
        self.set_goal(start if is_on else None)

    def _set(self, value: float) -> None:
        if self.check.isChecked():
            self.set_goal(value / self.bound.scale)

    def set_goal(self, value: float | None) -> None:
        """Set the bound in the goal; undo takes it back."""
        if value is not None:
            low, high = self.bound.low / self.bound.scale, self.bound.high / self.bound.scale
            value = round(min(high, max(low, value)), 6)
        self._session.choices.set_goal(replace(self._session.document.recipe.goal, **{self.bound.field: value}))
