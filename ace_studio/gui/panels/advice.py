"""Advice after a run: at most three cards with estimates; after the next run, the estimate beside the result."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QStackedWidget, QWidget

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import (
    GAP,
    MARGIN,
    EmptyState,
    button,
    clear_layout,
    column,
    label,
    row,
    scrolling,
    set_role,
)
from ace_studio.gui.words.starting import why_not
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
        """Build the card for the advice at this place."""
        super().__init__()
        self.card = card
        self.setProperty("role", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(250)
        self.setMaximumWidth(2 * CARD_WIDTH)
        self.setAccessibleName(f"Advice {index + 1}: {card.title}")
        heading = label(f"{index + 1}  {card.title}")
        heading.setProperty("weight", "strong")
        gain = label(card.estimate, "good")
        sets = label("\n".join(change_words(card)), "dim")
        first = label(f"First: {card.do_first}", "warn")
        for part, text in ((sets, card.change), (first, card.do_first), (gain, card.estimate)):
            part.setVisible(bool(text))
        for part in (heading, gain, sets, first):
            part.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.show_button = button(
            "Show", lambda: panel.show_what(card), tip="Show the ops or the choice of this advice"
        )
        self.show_button.setAccessibleName(f"Show the ops of advice {index + 1}")
        self.apply_button = button(
            "Apply as a new run", lambda: panel.session.jobs.apply_advice(index), role="primary" if index == 0 else ""
        )
        self.apply_button.setAccessibleName(f"Apply advice {index + 1} as a new run")
        buttons = row(self.apply_button, self.show_button, None)
        self.setLayout(column(heading, gain, label(card.why), sets, first, buttons, None, margin=10, gap=6))

    def allow(self, why: str) -> None:
        """Enable or disable applying; ``why`` is the reason."""
        reason = why or self.card.do_first or ("" if self.card.change else "This has to be done by hand")
        self.apply_button.setEnabled(not reason)
        self.apply_button.setToolTip(reason or "Sets the choices below, as one step of undo, and runs them")


class AdvicePanel(Panel):
    """Three ranked cards, and the result of the one that was applied last."""

    title = "Advice"
    shows = frozenset({Part.RUNS, Part.ACTIVITY, Part.TRUST})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start empty."""
        super().__init__(session, theme)
        self.cards: list[AdviceCard] = []
        self._shown: object = None
        self.outcome = label("")
        self.outcome.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._row = row(gap=GAP)
        content = QWidget()
        content.setLayout(column(self.outcome, self._row, None, margin=MARGIN, gap=GAP))
        self._empty = EmptyState("info")
        self._empty.tint(theme.colours.text_dim)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(scrolling(content))
        self.setLayout(column(self._pages))

    def update_from(self, document: Document) -> None:
        """Show the cards of the last run."""
        result = document.result
        advice = result.advice if result is not None else ()
        outcome = result.advice_from if result is not None else None
        if result is not self._shown:
            self._shown = result
            self._fill(advice)
        self._say(outcome)
        self._pages.setCurrentIndex(1 if advice or outcome else 0)
        if not advice:
            self._empty.say(*_why_none(document))
        why = why_not(document)
        for card in self.cards:
            card.allow(why)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)

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
        self.outcome.setText(f"“{outcome.title}” was applied: {outcome.verdict}")
        gained = outcome.actual_gain is not None and outcome.estimated_gain is not None
        fell_short = gained and (outcome.actual_gain or 0.0) < 0.5 * (outcome.estimated_gain or 0.0)
        set_role(self.outcome, "warn" if fell_short else "good")


def _why_none(document: Document) -> tuple[str, str]:
    if document.activity.is_working:
        return "No advice yet", "It appears at the end of the run."
    if document.result is not None:
        return "Nothing to advise", "None of the usual improvements fits this run."
    return "No advice yet", "After a run, up to three cards suggest what to try next, with the expected gain."
