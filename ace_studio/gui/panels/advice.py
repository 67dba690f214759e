"""Advice after a run: at most three cards with estimates; after the next run, the estimate beside the result."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame

from ace_studio.gui.style.language import tr
from ace_studio.gui.style.sizes import CLOSE, GAP, MARGIN
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.layouts import box, clear_layout, column, row, scrolling
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import allow, button, label, selectable, set_role
from ace_studio.gui.words.steps import why_not
from ace_studio.records.advice import Advice, AdviceOutcome
from ace_studio.session.advice import change_words, ops_of_advice
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

CARD_WIDTH = 340
_PANEL_OF_TABLE = {"inputs": "shapes", "capture": "capture", "calibration": "model", "evaluate": "model"}
"""Table of the recipe -> panel in which it is chosen; the others are in the plan."""


class AdviceCard(QFrame):
    """One card."""

    def __init__(self, panel: AdvicePanel, index: int, card: Advice) -> None:
        super().__init__()
        self.card = card
        self.setProperty("role", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(250)
        self.setMaximumWidth(2 * CARD_WIDTH)
        self.setAccessibleName(tr("Advice {number}: {title}", number=index + 1, title=card.title))
        heading = label(f"{index + 1}  {card.title}", strong=True)
        gain = label(card.estimate, "good")
        sets = label("\n".join(change_words(card)), "dim")
        first = label(tr("First: {do_first}", do_first=card.do_first), "warn")
        for part, text in ((sets, card.change), (first, card.do_first), (gain, card.estimate)):
            part.setVisible(bool(text))
        for part in (heading, gain, sets, first):
            selectable(part)
        self.show_button = button(
            tr("Show"), lambda: panel.show_what(card), tip=tr("Show the ops or the choice of this advice")
        )
        self.show_button.setAccessibleName(tr("Show the ops of advice {number}", number=index + 1))
        self.apply_button = button(
            tr("Apply as a new run"),
            lambda: panel.session.jobs.apply_advice(index),
            role="primary" if index == 0 else "",
        )
        self.apply_button.setAccessibleName(tr("Apply advice {number} as a new run", number=index + 1))
        buttons = row(self.apply_button, self.show_button, None)
        self.setLayout(column(heading, gain, label(card.why), sets, first, buttons, None, margin=MARGIN, gap=CLOSE))

    def allow(self, why: str) -> None:
        """Enable or disable applying; ``why`` is the reason."""
        reason = why or self.card.do_first or ("" if self.card.change else tr("This has to be done by hand"))
        allow(self.apply_button, reason, tr("Sets the choices below, as one step of undo, and runs them"))


class AdvicePanel(Panel):
    """Three ranked cards, and the result of the one that was applied last."""

    title = "Advice"
    shows = frozenset({Part.RUNS, Part.ACTIVITY, Part.TRUST})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self.cards: list[AdviceCard] = []
        self.outcome = selectable(label(""))
        self._row = row(gap=GAP)
        self.show_pages("info", scrolling(box(column(self.outcome, self._row, None, margin=MARGIN, gap=GAP))))

    def update_from(self, document: Document) -> None:
        """Show the cards of the last run."""
        result = document.result
        advice = result.advice if result is not None else ()
        outcome = result.advice_from if result is not None else None
        if self.has_changed(result):
            self._fill(advice)
        self._say(outcome)
        self._pages.setCurrentIndex(1 if advice or outcome else 0)
        if not advice:
            self._empty.say(*_why_none(document))
        why = why_not(document)
        for card in self.cards:
            card.allow(why)

    def show_what(self, card: Advice) -> None:
        """Select the ops of a card, or open the panel of its change."""
        ops = ops_of_advice(card, self.session.document)
        if ops:
            self.session.view.select(ops)
            self.session.view.look_closer()
            self.panel_wanted.emit("ops")
            return
        table = next(iter(card.change), "")
        self.panel_wanted.emit("breaks" if card.kind == "mend-break" else _PANEL_OF_TABLE.get(table, "plan"))

    def _fill(self, advice: tuple[Advice, ...]) -> None:
        clear_layout(self._row)
        self.cards = [AdviceCard(self, at, card) for at, card in enumerate(advice)]
        for card in self.cards:
            self._row.addWidget(card, 1, Qt.AlignmentFlag.AlignTop)
        if len(self.cards) < 3:
            self._row.addStretch(3 - len(self.cards))

    def _say(self, outcome: AdviceOutcome | None) -> None:
        self.outcome.setVisible(outcome is not None)
        if outcome is None:
            return
        self.outcome.setText(tr("“{title}” was applied: {verdict}", title=outcome.title, verdict=outcome.verdict))
        gained = outcome.actual_gain is not None and outcome.estimated_gain is not None
        fell_short = gained and (outcome.actual_gain or 0.0) < 0.5 * (outcome.estimated_gain or 0.0)
        set_role(self.outcome, "warn" if fell_short else "good")


def _why_none(document: Document) -> tuple[str, str]:
    if document.activity.is_working:
        return tr("No advice yet"), tr("It appears at the end of the run.")
    if document.result is not None:
        return tr("Nothing to advise"), tr("None of the usual improvements fits this run.")
    return tr("No advice yet"), tr("After a run, up to three cards suggest what to try next, with the expected gain.")
