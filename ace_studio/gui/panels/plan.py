"""The plan panel: precisions, goal, targets, and all that a run may do besides. What is not possible is grey."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QWidget

from ace_studio.gui.panel import Panel
from ace_studio.gui.plan_form import field_rows
from ace_studio.gui.plan_form.goal import GoalForm, goal_words
from ace_studio.gui.plan_form.measure import MeasureForm
from ace_studio.gui.plan_form.precision import PrecisionForm
from ace_studio.gui.plan_form.record_form import RecordForm
from ace_studio.gui.plan_form.section import Section
from ace_studio.gui.plan_form.targets import TargetsForm
from ace_studio.gui.theme import Theme
from ace_studio.gui.widgets import MARGIN, column, rule, scrolling
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_FORMS = (
    ("Calibration", field_rows.CALIBRATION_FIELDS),
    ("Better rounding", field_rows.IMPROVE_FIELDS),
    ("Sensitivity", field_rows.SENSITIVITY_FIELDS),
    ("Accuracy", field_rows.EVALUATE_FIELDS),
    ("Pruning", field_rows.PRUNE_FIELDS),
    ("Fine-tuning", field_rows.FINETUNE_FIELDS),
)
"""Folded at first: what most runs leave as it is."""


class PlanPanel(Panel):
    """What is wanted."""

    title = "Plan"
    shows = frozenset({Part.RECIPE, Part.ENVIRONMENT, Part.GRAPH, Part.RUNS, Part.FILE})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Build a section per form."""
        super().__init__(session, theme)
        self.precision = PrecisionForm(session)
        self.goal = GoalForm(session)
        self.targets = TargetsForm(session)
        self.measure = MeasureForm(session)
        self.forms = {name: RecordForm(session, fields) for name, fields in _FORMS}
        self.sections = {name: Section(session, name, form, is_open=is_open) for name, form, is_open in self._parts()}
        content = QWidget()
        layout = column(margin=MARGIN, gap=8)
        for at, section in enumerate(self.sections.values()):
            if at:
                layout.addWidget(rule())
            layout.addWidget(section)
        layout.addStretch(1)
        content.setLayout(layout)
        self.setLayout(column(scrolling(content)))
        self.setFocusProxy(self.precision.default)

    def _parts(self) -> Iterator[tuple[str, QWidget, bool]]:
        yield "Precision", self.precision, True
        yield "Goal", self.goal, True
        yield "Targets", self.targets, True
        for name, form in self.forms.items():
            if form.fields:
                yield name, form, False
        yield "Measuring", self.measure, True

    def update_from(self, document: Document) -> None:
        """Show the choices."""
        shown = (self.precision, self.goal, self.targets, self.measure)
        for update in (*(one.update_from for one in shown), *(one.update_from for one in self.forms.values())):
            update(document)
        plan, measure = document.recipe.plan, document.recipe.measure
        words = {
            "Precision": "found from the goal" if plan.from_goal else str(plan.default),
            "Goal": goal_words(document.recipe.goal),
            "Targets": ", ".join(document.recipe.targets.names),
            "Measuring": f"{measure.device}, threads {measure.threads}, {measure.rounds} rounds",
        }
        words |= {name: form.summary(document) for name, form in self.forms.items()}
        for name, section in self.sections.items():
            section.say(words[name])
