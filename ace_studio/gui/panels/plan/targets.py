"""The list of targets to build for. A missing target says why, and how to install it."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QWidget

from ace_studio.gui.ops.precision_offers import AUTO
from ace_studio.gui.style.language import told, tr
from ace_studio.gui.style.sizes import TIGHT
from ace_studio.gui.widgets.layouts import column
from ace_studio.gui.widgets.small import label, quiet, show_words
from ace_studio.records.messages import TargetReport
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.session.document import Document
from ace_studio.session.session import Session

BY_NAME = tr("Left out: another target runs the same code and builds faster. Untick the first line to choose it.")
"""Note on an available target that ``auto`` leaves out."""


class TargetsForm(QWidget):
    """A box for ``auto``, and one per target."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.auto = QCheckBox(tr("All available targets that fit the plan"))
        self.auto.toggled.connect(lambda _: self._choose())
        self.boxes: dict[str, QCheckBox] = {}
        self._reasons = {name: label("", "dim") for name in TARGET_ROWS}
        layout = column(self.auto, gap=TIGHT)
        for name in TARGET_ROWS:
            box = QCheckBox(name)
            box.toggled.connect(lambda _: self._choose())
            self.boxes[name] = box
            self._reasons[name].setIndent(24)
            layout.addWidget(box)
            layout.addWidget(self._reasons[name])
        self.setLayout(layout)

    def update_from(self, document: Document) -> None:
        """Show the choice, and what is possible."""
        names = document.recipe.targets.names
        is_auto = AUTO in names
        environment = document.environment
        reports = {report.name: report for report in environment.targets} if environment else {}
        precision = "" if document.recipe.plan.from_goal else str(document.recipe.plan.default)
        with quiet(self.auto, *self.boxes.values()):
            self.auto.setChecked(is_auto)
            for name, box in self.boxes.items():
                report = reports.get(name)
                is_available = report is None or report.available
                box.setText(_title(name, report))
                box.setChecked(name in names or (is_auto and _is_taken(name, report, precision)))
                box.setEnabled(not is_auto and (is_available or name in names))
                self._say(name, report, precision, is_left_out=is_auto and name not in names)

    def _say(self, name: str, report: TargetReport | None, precision: str, *, is_left_out: bool) -> None:
        reason = self._reasons[name]
        words, role = "", "dim"
        if report is not None and not report.available:
            words = "\n".join(part for part in (report.reason, report.install) if part)
        elif report is not None and report.precisions.get(precision):
            words, role = f"{precision}: {report.precisions[precision]}", "warn"
        elif report is not None and (report.not_run or (is_left_out and not report.is_in_auto)):
            words = told(report.not_run) or BY_NAME
        show_words(reason, words, role)
        self.boxes[name].setToolTip(words)

    def _choose(self) -> None:
        chosen = [name for name, box in self.boxes.items() if box.isChecked()]
        self._session.choices.set_targets([AUTO] if self.auto.isChecked() else chosen)


def _is_taken(name: str, report: TargetReport | None, precision: str) -> bool:
    """Whether ``auto`` includes this target; until the engine has reported, its row decides."""
    if report is None:
        return TARGET_ROWS[name].is_in_auto
    return report.available and report.is_in_auto and not report.precisions.get(precision)


def _title(name: str, report: TargetReport | None) -> str:
    if report is None:
        return name
    words = report.label or name
    return f"{words}  {report.version}" if report.version and report.available else words
