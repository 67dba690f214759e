"""The form of the goal: its bounds, and what to optimise among the candidates that meet them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QGridLayout, QLabel, QWidget

from ace_studio.gui.style.language import tr
from ace_studio.gui.widgets.fields import ComboBox, DecimalBox
from ace_studio.gui.widgets.small import fill_combo, quiet
from ace_studio.gui.words.goal_bounds import BOUNDS, BoundRow
from ace_studio.records.recipes.recipe import Objective
from ace_studio.session.document import Document
from ace_studio.session.session import Session


class GoalForm(QWidget):
    """A box and a number per bound."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.checks: dict[str, QCheckBox] = {}
        self.numbers: dict[str, QDoubleSpinBox] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setColumnStretch(0, 1)
        for at, bound in enumerate(BOUNDS):
            check = QCheckBox(bound.text[:1].upper() + bound.text[1:])
            number = DecimalBox(keyboardTracking=False, minimumWidth=112)
            check.setToolTip(bound.tip)
            check.toggled.connect(lambda on, row=bound: self._toggle(row, on))
            number.setRange(bound.low, bound.high)
            number.setDecimals(bound.decimals)
            number.setSuffix(bound.suffix)
            number.setSingleStep(10 ** -min(1, bound.decimals))
            number.setAccessibleName(bound.text)
            number.valueChanged.connect(lambda value, row=bound: self._set(row, value))
            grid.addWidget(check, at, 0)
            grid.addWidget(number, at, 1)
            self.checks[bound.field], self.numbers[bound.field] = check, number
        self.objective = ComboBox(tr("Optimise"), chosen=self._choose_objective)
        grid.addWidget(QLabel(tr("Among these, optimise")), len(BOUNDS), 0)
        grid.addWidget(self.objective, len(BOUNDS), 1)

    def update_from(self, document: Document) -> None:
        """Show the bounds."""
        goal = document.recipe.goal
        for bound in BOUNDS:
            value = getattr(goal, bound.field)
            check, number = self.checks[bound.field], self.numbers[bound.field]
            with quiet(check, number):
                check.setChecked(value is not None)
                number.setEnabled(value is not None)
                if not number.hasFocus() or value is None or abs(number.value() - value * bound.scale) > 1e-9:
                    number.setValue(bound.start if value is None else value * bound.scale)
        fill_combo(self.objective, [(tr(each), str(each)) for each in Objective], str(goal.optimize))

    def _toggle(self, bound: BoundRow, is_on: bool) -> None:
        self._change(**{bound.field: self.numbers[bound.field].value() / bound.scale if is_on else None})

    def _set(self, bound: BoundRow, value: float) -> None:
        if self.checks[bound.field].isChecked():
            self._change(**{bound.field: value / bound.scale})

    def _choose_objective(self) -> None:
        self._change(optimize=Objective(self.objective.currentData()))

    def _change(self, **values: Any) -> None:
        self._session.choices.set_goal(replace(self._session.document.recipe.goal, **values))
