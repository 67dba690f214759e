"""The plan panel: precisions, goal, targets, and how to measure. What is not possible is grey and says why."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from ace_studio.gui.panel import Panel
from ace_studio.gui.plan_form.goal import GoalForm
from ace_studio.gui.plan_form.measure import MeasureForm
from ace_studio.gui.plan_form.precision import PrecisionForm
from ace_studio.gui.plan_form.targets import TargetsForm
from ace_studio.gui.theme import Theme
from ace_studio.gui.widgets import MARGIN, column, label, rule, scrolling
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session


class PlanPanel(Panel):
    """What is wanted."""

    title = "Plan"
    shows = frozenset({Part.RECIPE, Part.ENVIRONMENT})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Build the four forms."""
        super().__init__(session, theme)
        self.precision = PrecisionForm(session)
        self.goal = GoalForm(session)
        self.targets = TargetsForm(session)
        self.measure = MeasureForm(session)
        content = QWidget()
        content.setLayout(
            column(
                label("Precision", "heading"),
                self.precision,
                rule(),
                label("Goal", "heading"),
                self.goal,
                rule(),
                label("Targets", "heading"),
                self.targets,
                rule(),
                label("Measuring", "heading"),
                self.measure,
                None,
                margin=MARGIN,
                gap=10,
            )
        )
        self.setLayout(column(scrolling(content)))
        self.setFocusProxy(self.precision.default)

    def update_from(self, document: Document) -> None:
        """Show the choices."""
        for form in (self.precision, self.goal, self.targets, self.measure):
            form.update_from(document)
