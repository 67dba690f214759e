"""The plan panel: precisions, goal, targets and the other options of a run. What is not possible is grey."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from PySide6.QtWidgets import QWidget

from ace_studio.gui.ops.facts import op_facts
from ace_studio.gui.panels.plan import field_rows
from ace_studio.gui.panels.plan.forms import GoalForm, MeasureForm, PrecisionForm, TargetsForm, measure_words
from ace_studio.gui.panels.plan.record_form import RecordForm, summary_of
from ace_studio.gui.panels.plan.section import Section
from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.layouts import GAP, MARGIN, column, row, scrolling
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import button, label, rule
from ace_studio.gui.widgets.table_look import plain_table
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import plural
from ace_studio.gui.words.goal_bounds import goal_words
from ace_studio.records.by_identity import are_same
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.families import ModelFamily, family_of_graph
from ace_studio.session.comparison.figures import RecipeChange
from ace_studio.session.comparison.sides import PinnedPair
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_FORMS = {
    "Calibration": field_rows.CALIBRATION_FIELDS,
    tr("Better rounding"): field_rows.IMPROVE_FIELDS,
    "Sensitivity": field_rows.SENSITIVITY_FIELDS,
    "Accuracy": field_rows.EVALUATE_FIELDS,
    "Pruning": field_rows.PRUNE_FIELDS,
    "Fine-tuning": field_rows.FINETUNE_FIELDS,
}
"""Sections for rarer options, folded at first and made when they are opened."""
_HELP = {
    "Precision": "plan",
    "Goal": "goals",
    "Targets": "targets",
    "Calibration": "improve#calibration-data",
    tr("Better rounding"): "improve#improvements",
    "Sensitivity": "goals#which-ops-are-sensitive",
    "Accuracy": "measuring#accuracy",
    "Pruning": "compress-more#pruning",
    "Fine-tuning": "compress-more#fine-tuning",
    "Measuring": "measuring",
}
"""Section -> page of the help."""


class PlanPanel(Panel):
    """The choices of the recipe, in sections."""

    title = "Plan"
    shows = frozenset({Part.RECIPE, Part.ENVIRONMENT, Part.GRAPH, Part.RUNS, Part.FILE, Part.SELECTION})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self.precision: PrecisionForm
        self.goal: GoalForm
        self.targets: TargetsForm
        self.measure: MeasureForm
        self._shown: tuple[object, ...] = ()
        self.forms: dict[str, RecordForm] = {}
        """Those of `_FORMS` that were opened."""
        self.sections = {name: Section(session, name, make, is_open=is_open) for name, make, is_open in self._parts()}
        self._family: ModelFamily | None = None
        self._family_graph: GraphTable | None = None
        self.ready = button("", self._use_ready, role="link")
        self.ready.setToolTip(tr("For this kind of model: calibration, goal, precisions; undo takes them back"))
        self.ready.setProperty("help", "recipes")
        self.ready.setMinimumWidth(1)  # a long name must not widen the panel
        self.ready.hide()
        content = QWidget()
        layout = column(row(self.ready, None), margin=MARGIN, gap=GAP)
        for at, (name, section) in enumerate(self.sections.items()):
            if at:
                layout.addWidget(rule())
            layout.addWidget(section)
            section.setProperty("help", _HELP[name])
            section.opened.connect(lambda: self._show(session.document))
        layout.addStretch(1)
        content.setLayout(layout)
        self.forms_page = scrolling(content)
        self.forms_page.hide()  # until it is made and filled
        self.changes = ColumnsModel(self)
        self.changes_table = plain_table(self.changes, tr("Choices that differ"))
        self.changes_table.hide()
        self._changed = label("", "dim")
        self._changed.setContentsMargins(MARGIN, MARGIN, MARGIN, 0)
        self._changed.hide()
        self.setLayout(column(self._changed, self.changes_table, self.forms_page))

    def make_parts(self) -> Iterator[None]:
        """Make the forms, and show those whose section is open."""
        self.precision = PrecisionForm(self.session)
        self.setFocusProxy(self.precision.default)
        yield
        self.goal = GoalForm(self.session)
        self.targets = TargetsForm(self.session)
        yield
        self.measure = MeasureForm(self.session)
        yield
        for section in self.sections.values():
            section.fill()
            yield

    def _parts(self) -> Iterator[tuple[str, Callable[[], QWidget], bool]]:
        yield "Precision", lambda: self.precision, True
        yield "Goal", lambda: self.goal, True
        yield "Targets", lambda: self.targets, True
        for name in _FORMS:
            yield name, partial(self._form, name), False
        yield "Measuring", lambda: self.measure, True

    def _form(self, name: str) -> QWidget:
        self.forms[name] = RecordForm(self.session, _FORMS[name])
        return self.forms[name]

    def update_from(self, document: Document) -> None:
        """Show the choices, or those that differ. A change of the selection alone is cheap."""
        found = document.comparison
        self.forms_page.setVisible(found is None)
        for each in (self.changes_table, self._changed):
            each.setVisible(found is not None)
        if found is not None:
            self._show_changes(found)
            return
        wanted = (
            document.recipe, document.environment, document.graph, document.capture, document.refusals, document.file,
            document.folder, op_facts(document),
        )  # fmt: skip
        is_same = are_same(self._shown, wanted)
        self._shown = wanted
        if is_same:
            self.precision.modules.show_selection(document)
        else:
            self._show(document)

    def _use_ready(self) -> None:
        if self._family is not None:
            self.session.choices.use_family(self._family)

    def _offer_ready(self, document: Document) -> None:
        """Offer the ready recipe of the model's family, if it would change something."""
        if document.graph is not self._family_graph:
            self._family_graph = document.graph
            self._family = family_of_graph(document.graph) if document.graph is not None else None
        family = self._family
        is_new = family is not None and self.session.choices.with_family(family) != document.recipe
        self.ready.setVisible(is_new and document.read_only is None)
        if family is not None:
            self.ready.setText(tr("Use the recipe: {family}", family=tr(family.label)))

    def _show_changes(self, found: PinnedPair) -> None:
        if self._shown != (found,):
            self._shown = (found,)
            self.changes.set_columns(_choice_columns(found.changes))
            has_both = all(side.recipe for side in found.sides)
            words = (
                tr("A and B differ in {choices}", choices=plural(len(found.changes), "choice"))
                if found.changes
                else tr("The same choices")
            )
            self._changed.setText(words if has_both else tr("Only one side has choices"))
            for at, width in enumerate((130, 90, 90)):
                self.changes_table.setColumnWidth(at, width)

    def _show(self, document: Document) -> None:
        self._offer_ready(document)
        shown = (self.precision, self.goal, self.targets, self.measure)
        for update in (*(one.update_from for one in shown), *(one.update_from for one in self.forms.values())):
            update(document)
        plan = document.recipe.plan
        words = {
            "Precision": tr("found from the goal") if plan.from_goal else str(plan.default),
            "Goal": goal_words(document.recipe.goal),
            "Targets": ", ".join(document.recipe.targets.names),
            "Measuring": measure_words(document),
        }
        words |= {name: summary_of(fields, document) for name, fields in _FORMS.items()}
        for name, section in self.sections.items():
            section.say(words[name])


def _choice_columns(changes: Sequence[RecipeChange]) -> list[Column]:
    return [
        Column(title="choice", values=[one.name for one in changes]),
        Column(title="A", values=[one.first for one in changes], tips=lambda at: changes[at].first),
        Column(title="B", values=[one.second for one in changes], tips=lambda at: changes[at].second),
    ]
