"""How A and B were captured: a row per capture method, with both attempts."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtWidgets import QWidget

from ace_studio.gui.panels.capture.method_list import capture_words
from ace_studio.gui.style import Colours, told, tr
from ace_studio.gui.widgets.differences import difference_column, difference_words
from ace_studio.gui.widgets.layouts import GAP, MARGIN, TIGHT, column
from ace_studio.gui.widgets.small import label, selectable
from ace_studio.gui.widgets.table_look import plain_table, show_columns
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import ATTEMPT_LOOKS, NOTHING, seconds_text
from ace_studio.gui.words.problems import problem_text
from ace_studio.records.results import AttemptStatus
from ace_studio.session.comparison.findings import Beside, MethodTry, attempts_beside
from ace_studio.session.comparison.sides import NAMES, PinnedPair


class ComparedCaptures(QWidget):
    """A line about either capture, then the methods side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.summaries = [selectable(label("")) for _ in NAMES]
        self.model = ColumnsModel(self)
        self.table = plain_table(self.model, tr("Capture methods of A and B"))
        head = column(*self.summaries, margin=(MARGIN, GAP, MARGIN, GAP), gap=TIGHT)
        self.setLayout(column(head, self.table, gap=0))
        self.setFocusProxy(self.table)

    def show_pair(self, found: PinnedPair, colours: Colours) -> None:
        """Show both captures."""
        captures = [side.capture for side in found.sides]
        for name, capture, line in zip(NAMES, captures, self.summaries, strict=True):
            words = tr("not traced") if capture is None else capture_words(capture)
            line.setText(f"{name}: {words}")
        show_columns(self.table, self.model, attempt_columns(attempts_beside(captures[0], captures[1]), colours))


def attempt_columns(rows: Sequence[Beside[MethodTry]], colours: Colours) -> list[Column]:
    """Both attempts of every method."""
    tip = tr("Seconds are single measurements and are not compared")
    tries = [[one.first for one in rows], [one.second for one in rows]]
    found = [
        Column(title="method", values=[one.shown.outcome.name for one in rows], width=100),
        difference_column([difference_words(one) for one in rows], colours, tip=tip),
    ]
    found += [
        Column(title=tr("{name}: outcome", name=name), values=list(map(_outcome_words, each)), width=190,
               tips=partial(_tip, each))
        for name, each in zip(NAMES, tries, strict=True)
    ]  # fmt: skip
    found += [
        Column(title=f"{name}: {tr('took')}", values=list(map(_seconds, each)), is_number=True, width=72, tip=tip,
               text=lambda seconds: NOTHING if seconds is None else seconds_text(seconds))
        for name, each in zip(NAMES, tries, strict=True)
    ]  # fmt: skip
    found += [
        Column(title=f"{name}: {tr('ops')}", values=[one.outcome.ops or None if one else None for one in each],
               is_number=True, width=64, text=lambda ops: NOTHING if ops is None else str(ops))
        for name, each in zip(NAMES, tries, strict=True)
    ]  # fmt: skip
    return found


def _outcome_words(one: MethodTry | None) -> str:
    if one is None:
        return NOTHING
    words = ATTEMPT_LOOKS[one.outcome.status][0]
    why = one.outcome.error.what if one.outcome.error is not None else one.outcome.reason
    words = f"{words}: {told(why)}" if why else words
    return f"{tr('taken')}: {words}" if one.is_taken else words


def _seconds(one: MethodTry | None) -> float | None:
    return None if one is None or one.outcome.status is AttemptStatus.SKIPPED else one.outcome.seconds


def _tip(tries: Sequence[MethodTry | None], at: int) -> str:
    one = tries[at]
    error = one.outcome.error if one is not None else None
    return _outcome_words(one) if error is None else problem_text(error)
