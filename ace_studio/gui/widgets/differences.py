"""How a difference between A and B is marked: with the same words and the same colour in every panel."""

from collections.abc import Callable, Sequence
from typing import Any

from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.table_model import Column
from ace_studio.gui.words.formatting import NOTHING
from ace_studio.session.comparison.findings import Beside, Change
from ace_studio.session.comparison.sides import NAMES

DIFFERS = tr("differs")
"""Begins the words at everything that differs, so that a filter finds it."""
_PARTS = {
    "taken": tr("taken"),
    "outcome": tr("outcome"),
    "reason": tr("reason"),
    "ops": tr("ops"),
    "met": tr("met"),
    "ops eager": tr("ops eager"),
    "what to do": tr("what to do"),
    "choices": tr("choices"),
    "estimate": tr("estimate"),
}
"""What differs of two findings -> its words."""


def differs_words(what: str) -> str:
    """``differs: only in B``."""
    return f"{DIFFERS}: {what}"


def difference_words(one: Beside[Any]) -> str:
    """What differs: ``differs: ops``; empty if nothing does, or if one side is not known."""
    if one.change is Change.OTHER:
        return differs_words(", ".join(_PARTS[part] for part in one.parts))
    return "" if one.change in (Change.SAME, Change.UNKNOWN) else differs_words(tr(one.change))


def beside_text(first: str, second: str) -> str:
    """``8 → 16``; once if they are the same."""
    return second if first == second else f"{first or NOTHING} → {second or NOTHING}"


def beside_tip(first: str, second: str) -> str:
    """A line for A and one for B."""
    return "\n".join(f"{name}: {text or NOTHING}" for name, text in zip(NAMES, (first, second), strict=True))


def difference_column(
    words: Sequence[str], colours: Colours, *, tip: str, swatch: Callable[[int], str] | None = None
) -> Column:
    """The column that says what differs in each row; with ``swatch``, row -> the colour that the graph gives it."""
    colour = None if swatch else lambda _: colours.warn
    return Column(
        title="difference", values=words, width=150, tip=tip, tips=lambda at: words[at], colour=colour, swatch=swatch
    )
