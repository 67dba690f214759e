"""The form of precisions: the default, ticks on modules, rules, and the scheme of the numbers."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from ace_studio.gui.ops.precision_offers import grey_out, precision_offers, warning_for
from ace_studio.gui.panels.plan.field_rows import SCHEME_FIELDS
from ace_studio.gui.panels.plan.module_tree import ModuleTree
from ace_studio.gui.panels.plan.record_form import RecordForm
from ace_studio.gui.panels.plan.rule_list import RuleList
from ace_studio.gui.style.language import tr
from ace_studio.gui.style.sizes import CLOSE
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import column
from ace_studio.gui.widgets.small import fill_combo, label, set_role, show_words
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.document import Document
from ace_studio.session.session import Session

FROM_GOAL = "from-goal"
NO_GOAL = tr(
    "No goal is set below, so a run would compress nothing. Choose a precision here, or tick a bound of the goal."
)
_ABOUT: dict[str, str] = {
    FROM_GOAL: tr("The goal below chooses the precision of every op when it runs."),
    "fp32": tr("The reference: nothing is compressed."),
    "fp16": tr("Half precision; overflows at 65504."),
    "bf16": tr("The range of fp32 with 7 bits of mantissa."),
    "int8-static": tr("8-bit weights and activations; ranges from calibration inputs."),
    "int8-dynamic": tr("8-bit weights and activations; ranges found at every call."),
    "int8-weight": tr("8-bit weights, float arithmetic."),
    "int4-weight": tr("4-bit weights in groups, float arithmetic."),
    "fp8": tr("8-bit floats, on devices that have them."),
}


class PrecisionForm(QWidget):
    """A choice for all ops, ticks on modules, and a table of rules; later rules win."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.default = ComboBox(tr("Precision of every op that no rule names"), chosen=self._choose_default)
        self._about = label("", "dim")
        self._refused = label("", "warn")
        self.modules = ModuleTree(session)
        self.rules = RuleList(session)
        self.scheme = RecordForm(session, SCHEME_FIELDS)
        parts = (self.default, self._about, self._refused, self.modules, self.rules, self.scheme)
        self.setLayout(column(*parts, gap=CLOSE))
        self.scheme.setVisible(bool(self.scheme.fields))  # not before it has a parent: it would be a window

    def update_from(self, document: Document) -> None:
        """Show default, modules and rules."""
        plan = document.recipe.plan
        offers = precision_offers(document)
        options = [(tr("found from the goal"), FROM_GOAL), *((str(each), str(each)) for each in Precision)]
        chosen = FROM_GOAL if plan.from_goal else str(plan.default)
        fill_combo(self.default, options, chosen)
        grey_out(self.default, offers)
        # A look at the file sets what a new model begins with; until then there is nothing to warn of.
        has_nothing_to_do = plan.from_goal and not document.recipe.goal.has_bound and document.file is not None
        self._about.setText(NO_GOAL if has_nothing_to_do else _ABOUT.get(chosen, ""))
        set_role(self._about, "warn" if has_nothing_to_do else "dim")
        show_words(self._refused, warning_for(offers, chosen, document))
        self.modules.update_from(document, offers)
        self.rules.update_from(document, offers)
        self.scheme.update_from(document)

    def _choose_default(self) -> None:
        value = self.default.currentData()
        if value == FROM_GOAL:
            self._session.plan.set_plan_from_goal(True)
        else:
            self._session.plan.set_default_precision(Precision(value))
