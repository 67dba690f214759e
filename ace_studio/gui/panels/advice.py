"""Advice after a run: at most three cards with estimates; after the next run, the estimate beside the result."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame

from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.differences import difference_words
from ace_studio.gui.widgets.layouts import CLOSE, GAP, MARGIN, box, clear_layout, column, row, scrolling
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import allow, button, label, selectable, set_role
from ace_studio.gui.words.formatting import NOTHING
from ace_studio.gui.words.steps import why_not
from ace_studio.records.advice import Advice, AdviceOutcome
from ace_studio.session.advice import change_words, ops_of_advice
from ace_studio.session.comparison.findings import Beside, Change, advice_beside
from ace_studio.session.comparison.sides import NAMES, PinnedPair
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

CARD_WIDTH = 340
_PANEL_OF_TABLE = {"inputs": "shapes", "capture": "capture", "calibration": "model", "evaluate": "model"}
"""Table of the recipe -> panel in which it is chosen; the others are in the plan."""


class AdviceCard(QFrame):
    """One card."""

    def __init__(self, panel: AdvicePanel, index: int, card: Advice, found: Beside[Advice] | None = None) -> None:
        """``found``: what it is in A and in B while these are compared."""
        super().__init__()
        self.card = card
        is_only_first = found is not None and found.second is None
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
        self.difference = label("", "warn")
        before = label("", "dim")
        for part in (heading, gain, sets, first, self.difference, before):
            selectable(part)
        if found is not None:
            words = difference_words(found)
            is_same = found.change is Change.SAME
            self.difference.setText(tr("the same in A and B") if is_same else words)
            set_role(self.difference, "warn" if words else "dim")
            before.setText(_other_words(found))
        for part in (self.difference, before):
            part.setVisible(bool(part.text()))
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
        self.show_button.setVisible(not is_only_first)
        self.apply_button.setVisible(found is None)
        buttons = row(self.apply_button, self.show_button, None)
        parts = (heading, self.difference, gain, before, label(card.why), sets, first, buttons)
        self.setLayout(column(*parts, None, margin=MARGIN, gap=CLOSE))

    def allow(self, why: str) -> None:
        """Enable or disable applying; ``why`` is the reason."""
        reason = why or self.card.do_first or ("" if self.card.change else tr("This has to be done by hand"))
        allow(self.apply_button, reason, tr("Sets the choices below, as one step of undo, and runs them"))


class AdvicePanel(Panel):
    """Three ranked cards, and the result of the one that was applied last."""

    title = "Advice"
    shows = frozenset({Part.RUNS, Part.ACTIVITY, Part.TRUST, Part.FILE})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self.cards: list[AdviceCard] = []
        self.outcome = selectable(label(""))
        self._row, self._gone = row(gap=GAP), row(gap=GAP)
        content = box(column(self.outcome, self._row, self._gone, None, margin=MARGIN, gap=GAP))
        self.show_pages("info", scrolling(content))

    def update_from(self, document: Document) -> None:
        """Show the cards of the last run."""
        result = document.result
        advice = result.advice if result is not None else ()
        outcome = result.advice_from if result is not None else None
        compared = document.comparison
        if self.has_changed(result, compared):
            self._fill([(card, None) for card in advice] if compared is None else _compared(compared))
        if compared is not None and compared.sides[1].result is None:
            outcome = None  # of A
        self._say(outcome)
        self._pages.setCurrentIndex(1 if self.cards or outcome else 0)
        if not self.cards:
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

    def _fill(self, advice: Sequence[tuple[Advice, Beside[Advice] | None]]) -> None:
        """The cards in one row; while A and B are compared, those that only A has in a row below."""
        self.cards = []
        gone = [found is not None and found.second is None for _, found in advice]
        for cards, is_gone in ((self._row, False), (self._gone, True)):
            clear_layout(cards)
            wanted = [one for one, is_of_first in zip(advice, gone, strict=True) if is_of_first is is_gone]
            for card, found in wanted:
                made = AdviceCard(self, len(self.cards), card, found)
                self.cards.append(made)
                cards.addWidget(made, 1, Qt.AlignmentFlag.AlignTop)
            if 0 < len(wanted) < 3:
                cards.addStretch(3 - len(wanted))

    def _say(self, outcome: AdviceOutcome | None) -> None:
        self.outcome.setVisible(outcome is not None)
        if outcome is None:
            return
        self.outcome.setText(tr("“{title}” was applied: {verdict}", title=outcome.title, verdict=outcome.verdict))
        gained = outcome.actual_gain is not None and outcome.estimated_gain is not None
        fell_short = gained and (outcome.actual_gain or 0.0) < 0.5 * (outcome.estimated_gain or 0.0)
        set_role(self.outcome, "warn" if fell_short else "good")


def _compared(found: PinnedPair) -> list[tuple[Advice, Beside[Advice]]]:
    cards = (None if side.result is None else side.result.advice for side in found.sides)
    return [(one.shown, one) for one in advice_beside(*cards)]


def _other_words(found: Beside[Advice]) -> str:
    """What A says where the card of B says something else."""
    one, other = found.first, found.second
    if one is None or other is None:
        return ""
    sets = "\n".join(change_words(one)) if one.change != other.change else ""
    pairs = ((one.title, other.title), (one.do_first, other.do_first), (one.estimate, other.estimate), (sets, ""))
    return "\n".join(f"{NAMES[0]}: {mine or NOTHING}" for mine, theirs in pairs if mine != theirs)


def _why_none(document: Document) -> tuple[str, str]:
    if document.comparison is not None:
        has_both = all(side.result is not None for side in document.comparison.sides)
        words = tr("Neither A nor B has advice.") if has_both else tr("Only runs have advice.")
        return tr("Nothing to compare"), words
    if document.activity.is_working:
        return tr("No advice yet"), tr("It appears at the end of the run.")
    if document.result is not None:
        return tr("Nothing to advise"), tr("None of the usual improvements fits this run.")
    return tr("No advice yet"), tr("After a run, up to three cards suggest what to try next, with the expected gain.")
