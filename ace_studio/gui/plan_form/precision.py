"""The default precision, and the rules that say otherwise."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QWidget,
)

from ace_studio.gui.widgets import button, column, fill_combo, label, row
from ace_studio.records.plan import PlanRule, Precision
from ace_studio.session.document import Document
from ace_studio.session.session import Session

FROM_GOAL = "from-goal"
_ABOUT: dict[str, str] = {
    FROM_GOAL: "The goal below chooses the precision of every op when it runs.",
    "fp32": "The reference: nothing is compressed.",
    "fp16": "Half precision; overflows at 65504.",
    "bf16": "The range of fp32 with 7 bits of mantissa.",
    "int8-static": "8-bit weights and activations; ranges from calibration inputs.",
    "int8-dynamic": "8-bit weights and activations; ranges found at every call.",
    "int8-weight": "8-bit weights, float arithmetic.",
    "int4-weight": "4-bit weights in groups, float arithmetic.",
    "fp8": "8-bit floats, on devices that have them.",
}


class PrecisionForm(QWidget):
    """A choice for all ops, and a table of rules; later rules win."""

    def __init__(self, session: Session) -> None:
        """Build it."""
        super().__init__()
        self._session = session
        self._rules: tuple[PlanRule, ...] = ()
        self.default = QComboBox()
        self.default.setAccessibleName("Precision of every op that no rule names")
        self.default.activated.connect(lambda _: self._choose_default())
        self._about = label("", "dim")
        self.rules = QTableWidget(0, 3)
        self.rules.setAccessibleName("Rules; later ones win")
        self.rules.setHorizontalHeaderLabels(["rule", "precision", ""])
        self.rules.setShowGrid(False)
        self.rules.verticalHeader().hide()
        self.rules.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.rules.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.rules.setTabKeyNavigation(False)
        header = self.rules.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.Fixed)
        header.resizeSection(2, 34)
        self.match = QLineEdit()
        self.match.setPlaceholderText("New rule: module:layer1.*")
        self.match.setAccessibleName("Ops that the new rule is for")
        self.match.setToolTip("module:layer1.*   op:aten.conv2d.default   type:Linear   id:conv2d_3")
        self.match.returnPressed.connect(self._add)
        self.precision = QComboBox()
        self.precision.setAccessibleName("Precision of the new rule")
        for each in Precision:
            self.precision.addItem(str(each), str(each))
        self.add_button = button("Add", self._add, tip="Add the rule; later rules win")
        self.add_button.setAccessibleName("Add the rule")
        new = row(self.precision, self.add_button, None, gap=6)
        self.setLayout(column(self.default, self._about, self.rules, self.match, new, gap=6))

    def update_from(self, document: Document) -> None:
        """Show default and rules."""
        plan = document.recipe.plan
        options = [("found from the goal", FROM_GOAL), *((str(each), str(each)) for each in Precision)]
        chosen = FROM_GOAL if plan.from_goal else str(plan.default)
        fill_combo(self.default, options, chosen)
        self._about.setText(_ABOUT.get(chosen, ""))
        if plan.rules is not self._rules:
            self._rules = plan.rules
            self._fill(plan.rules)
        self.rules.setVisible(bool(plan.rules))

    def _fill(self, rules: tuple[PlanRule, ...]) -> None:
        self.rules.setRowCount(len(rules))
        height = self.fontMetrics().height() + 10
        for at, each in enumerate(rules):
            self.rules.setRowHeight(at, height)
            item = QTableWidgetItem(each.match)
            item.setToolTip(each.match)
            self.rules.setItem(at, 0, item)
            self.rules.setItem(at, 1, QTableWidgetItem(str(each.precision)))
            remove = QToolButton()
            remove.setText("×")
            remove.setAutoRaise(True)
            remove.setToolTip("Remove this rule")
            remove.setAccessibleName(f"Remove the rule {each.match}")
            remove.clicked.connect(lambda _=False, match=each.match: self._session.remove_rule(match))
            self.rules.setCellWidget(at, 2, remove)
        self.rules.setFixedHeight(min(6, len(rules)) * height + self.rules.horizontalHeader().sizeHint().height() + 4)
        self.rules.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if len(rules) > 6 else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )

    def _choose_default(self) -> None:
        value = self.default.currentData()
        if value == FROM_GOAL:
            self._session.set_plan_from_goal(True)
        else:
            self._session.set_default_precision(Precision(value))

    def _add(self) -> None:
        match = self.match.text().strip()
        if match:
            self._session.set_rule(match, Precision(self.precision.currentData()))
            self.match.clear()
