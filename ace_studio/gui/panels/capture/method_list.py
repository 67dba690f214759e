"""The capture methods as a tree: a row per method to switch on, off and move, with its problem below."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont, QIcon, QKeyEvent
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem

from ace_studio.gui.panels.capture.method_rows import METHOD_TIPS, MethodRow
from ace_studio.gui.style.icons import stroke_icon
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.small import quiet

NAME, OUTCOME, SECONDS, OPS = range(4)


class MethodList(QTreeWidget):
    """Shows `MethodRow`s. Check boxes switch; Alt+Up and Alt+Down move."""

    switched = Signal(str, bool)
    """A method was switched on or off."""
    move_wanted = Signal(str, int)
    """Try a method earlier (-1) or later (+1)."""

    def __init__(self, theme: Theme) -> None:
        """Start empty."""
        super().__init__()
        self._theme = theme
        self._rows: tuple[MethodRow, ...] = ()
        self.setHeaderLabels(["method", "outcome", "took", "ops"])
        self.setAccessibleName("Capture methods")
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
        item.setToolTip(OUTCOME, each.problem.as_text() if each.problem is not None else each.words)
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
                ("why", each.problem.why), ("what helps", each.problem.remedy), ("where", each.problem.where),
            ):  # fmt: skip
                if text:
                    item.addChild(self._line(label, text))
        return item

    def _line(self, label: str, text: str) -> QTreeWidgetItem:
        child = QTreeWidgetItem([label, text.replace("\n", " ")])
        child.setForeground(NAME, QBrush(QColor(self._theme.colours.text_dim)))
        child.setToolTip(OUTCOME, text)
        return child

    def _tell_switch(self, item: QTreeWidgetItem, at: int) -> None:
        if at == NAME and item.parent() is None:
            is_on = item.checkState(NAME) is Qt.CheckState.Checked
            self.switched.emit(str(item.data(NAME, Qt.ItemDataRole.UserRole)), is_on)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Alt with an arrow moves the method."""
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        if step is not None and event.modifiers() & Qt.KeyboardModifier.AltModifier and self.current:
            self.move_wanted.emit(self.current, step)
        else:
            super().keyPressEvent(event)
