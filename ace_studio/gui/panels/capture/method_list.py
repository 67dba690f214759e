"""The capture methods as a tree: a row per method to switch on, off and move, with its problem below."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont, QIcon
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem

from ace_studio.gui.style import Theme, stroke_icon, told, tr
from ace_studio.gui.widgets.small import on_key, quiet, tip_text
from ace_studio.gui.words.formatting import ATTEMPT_LOOKS, NOTHING, plural, seconds_text
from ace_studio.gui.words.problems import problem_text
from ace_studio.records.errors import Problem
from ace_studio.records.recipes.recipe import ALL_CAPTURE_METHODS
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport
from ace_studio.session.document import Document

NAME, OUTCOME, SECONDS, OPS = range(4)


class MethodList(QTreeWidget):
    """Shows `MethodRow`s. Check boxes switch; Alt+Up and Alt+Down move."""

    switched = Signal(str, bool)
    """A method was switched on or off."""
    move_wanted = Signal(str, int)
    """Try a method earlier (-1) or later (+1)."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: tuple[MethodRow, ...] = ()
        self.setHeaderLabels([tr("method"), tr("outcome"), tr("took"), tr("ops")])
        self.setAccessibleName(tr("Capture methods"))
        self.setToolTip("")
        self.setIndentation(16)
        self.setIconSize(QSize(16, 16))
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(OUTCOME, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Interactive)
        header.setMinimumSectionSize(64)
        self.setUniformRowHeights(True)
        self.setColumnWidth(NAME, 148)
        self.itemChanged.connect(self._tell_switch)
        on_key(self, "Alt+Up", lambda: self._move(-1))
        on_key(self, "Alt+Down", lambda: self._move(1))

    @property
    def current(self) -> str:
        """The capture method of the current row; empty if there is none."""
        item = self.currentItem()
        while item is not None and item.parent() is not None:
            item = item.parent()
        return str(item.data(NAME, Qt.ItemDataRole.UserRole)) if item is not None else ""

    def show_rows(self, rows: tuple[MethodRow, ...]) -> None:
        """Show the methods. Open rows and the current row stay."""
        if rows == self._rows:
            return
        current, opened = self.current, self._opened()
        self._rows = rows
        with quiet(self):
            self.clear()
            for each in rows:
                item = self._item(each)
                self.addTopLevelItem(item)
                item.setExpanded(each.name in opened)
                if each.name == current:
                    self.setCurrentItem(item)

    def restyle(self) -> None:
        """Use another theme."""
        rows, self._rows = self._rows, ()
        self.show_rows(rows)

    def _opened(self) -> set[str]:
        items = (self.topLevelItem(at) for at in range(self.topLevelItemCount()))
        return {str(item.data(NAME, Qt.ItemDataRole.UserRole)) for item in items if item and item.isExpanded()}

    def _item(self, each: MethodRow) -> QTreeWidgetItem:
        colours = self._theme.colours
        item = QTreeWidgetItem([each.name, each.words, each.seconds, each.ops])
        item.setData(NAME, Qt.ItemDataRole.UserRole, each.name)
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
        item.setCheckState(NAME, Qt.CheckState.Checked if each.is_on else Qt.CheckState.Unchecked)
        item.setToolTip(NAME, METHOD_TIPS.get(each.name, ""))
        item.setToolTip(OUTCOME, tip_text(problem_text(each.problem) if each.problem is not None else each.words))
        colour = {
            "good": colours.good, "bad": colours.bad, "warn": colours.warn, "accent": colours.accent,
        }.get(each.role, colours.text_dim)  # fmt: skip
        item.setForeground(OUTCOME, QBrush(QColor(colour)))
        if each.icon:
            item.setIcon(OUTCOME, QIcon(stroke_icon(each.icon, colour, colour)))
        for at in (SECONDS, OPS):
            item.setTextAlignment(at, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if each.is_taken:
            font = QFont(self.font())
            font.setBold(True)
            item.setFont(NAME, font)
            item.setFont(OUTCOME, font)
        if each.problem is not None:
            for label, text in (
                (tr("why"), each.problem.why),
                (tr("what helps"), each.problem.remedy),
                (tr("where"), each.problem.where),
            ):  # fmt: skip
                if text:
                    item.addChild(self._line(label, told(text)))
        return item

    def _line(self, label: str, text: str) -> QTreeWidgetItem:
        child = QTreeWidgetItem([label, text.replace("\n", " ")])
        child.setForeground(NAME, QBrush(QColor(self._theme.colours.text_dim)))
        child.setToolTip(OUTCOME, tip_text(text))
        return child

    def _tell_switch(self, item: QTreeWidgetItem, at: int) -> None:
        if at == NAME and item.parent() is None:
            is_on = item.checkState(NAME) is Qt.CheckState.Checked
            self.switched.emit(str(item.data(NAME, Qt.ItemDataRole.UserRole)), is_on)

    def _move(self, step: int) -> None:
        if self.current:
            self.move_wanted.emit(self.current, step)


METHOD_TIPS: dict[str, str] = {
    "export": tr("torch.export without reading the code: the fastest, and the most often successful"),
    "export-strict": tr("torch.export that reads the code: captures some models that the method above cannot"),
    "dynamo": tr("torch.compile's tracer, required to give one graph: keeps calls that are allowed in the graph"),
    "fx": tr("torch.fx with placeholders for values: no branches on values, whole modules can be kept"),
    "partial": tr("in subgraphs: Python runs between them, and the subgraphs are compressed"),
}


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """One row of the list."""

    name: str
    is_on: bool
    words: str
    icon: str
    role: str
    seconds: str = NOTHING
    ops: str = NOTHING
    problem: Problem | None = None
    is_taken: bool = False


def method_rows(document: Document) -> tuple[MethodRow, ...]:
    """All capture methods: those of the recipe in its order, then those that are switched off."""
    asked = document.recipe.capture.rungs
    outcomes = {one.name: one for one in document.rungs}
    names = (*asked, *(name for name in ALL_CAPTURE_METHODS if name not in asked))
    return tuple(_row(name, document, outcomes.get(name), is_on=name in asked) for name in names)


def _row(name: str, document: Document, outcome: CaptureAttempt | None, *, is_on: bool) -> MethodRow:
    if document.rung_at_work == name:
        detail = document.activity.detail.removeprefix(f"{name}: ")
        words = tr("running: {detail}", detail=detail) if detail and detail != name else tr("running …")
        return MethodRow(name=name, is_on=is_on, words=words, icon="run", role="accent")
    if outcome is None:
        words = tr("waits") if document.activity.is_working and document.rung_at_work and is_on else ""
        return MethodRow(name=name, is_on=is_on, words=words or ("" if is_on else tr("off")), icon="", role="dim")
    words, icon, role = ATTEMPT_LOOKS[outcome.status]
    was_tried = outcome.status is not AttemptStatus.SKIPPED
    taken = document.capture is not None and document.capture.rung == name and outcome.status is AttemptStatus.OK
    if why := outcome.error.what if outcome.error is not None else outcome.reason:
        words = f"{words}: {told(why)}"
    return MethodRow(
        name=name, is_on=is_on, words=tr("{words} – taken", words=words) if taken else words, icon=icon, role=role,
        seconds=seconds_text(outcome.seconds) if was_tried else NOTHING,
        ops=str(outcome.ops) if outcome.ops else NOTHING, problem=outcome.error, is_taken=taken,
    )  # fmt: skip


def wants_batch_only(document: Document) -> bool:
    """Whether a method took too long, and keeping only the batch dynamic may help."""
    was_slow = any(one.status is AttemptStatus.TIMEOUT for one in document.rungs)
    return was_slow and not document.recipe.capture.batch_only and not document.activity.is_working


def capture_summary(document: Document) -> str:
    """The last capture in one sentence."""
    capture = document.capture
    return "" if capture is None or document.activity.is_working else capture_words(capture)


def capture_words(capture: CaptureReport) -> str:
    """A capture in one sentence."""
    subgraphs = len(capture.pieces)
    size = plural(capture.ops, "op")
    if subgraphs:
        size = tr("{ops} in {subgraphs}", ops=size, subgraphs=plural(subgraphs, "subgraph"))
    if capture.cached:
        return tr("Cached capture: {size}, by {rung}. Nothing was traced.", size=size, rung=capture.rung)
    return tr("{rung} captured {size} in {time}.", rung=capture.rung, size=size, time=seconds_text(capture.seconds))


def moved(methods: tuple[str, ...], name: str, step: int) -> tuple[str, ...]:
    """The methods with one of them tried earlier (-1) or later (+1)."""
    if name not in methods:
        return methods
    to = max(0, min(len(methods) - 1, methods.index(name) + step))
    others = [one for one in methods if one != name]
    return (*others[:to], name, *others[to:])
