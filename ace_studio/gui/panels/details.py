"""The details panel: everything known of the selected op, or sums over several."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QStackedWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from ace_studio.gui.ops.details import Group, as_text, details_of
from ace_studio.gui.ops.details_beside import details_beside
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, ElidedLabel, EmptyState, button, column, row
from ace_studio.gui.words.starting import why_not
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_OP = int(Qt.ItemDataRole.UserRole)


class _Tree(QTreeWidget):
    """Qt's own copies only the first column of the current line."""

    copy_wanted = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_wanted.emit()
        else:
            super().keyPressEvent(event)


class DetailsPanel(Panel):
    """A tree of two columns. A line about another op leads to it; everything can be copied."""

    title = "Details"
    shows = frozenset({Part.GRAPH, Part.RUNS, Part.RECIPE, Part.SELECTION, Part.ACTIVITY, Part.TRUST})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start empty."""
        super().__init__(session, theme)
        self.groups: tuple[Group, ...] = ()
        self._folded: set[str] = set()
        """Titles of the groups that the user folded."""
        self.tree = _Tree()
        self.tree.setAccessibleName("Details of the selected ops")
        self.tree.setHeaderHidden(True)
        self.tree.setColumnCount(2)
        self.tree.setRootIsDecorated(True)
        self.tree.setIndentation(12)
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.tree.header().setStretchLastSection(True)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        self.tree.header().resizeSection(0, self.fontMetrics().horizontalAdvance("not supported by") + 30)
        self.tree.itemActivated.connect(lambda item, _: self._go_to(item))
        self.tree.itemCollapsed.connect(lambda item: self._folded.add(item.text(0)))
        self.tree.itemExpanded.connect(lambda item: self._folded.discard(item.text(0)))
        self.tree.copy_wanted.connect(self.copy)
        self.about = ElidedLabel()
        self.copy_button = button("Copy", self.copy_all, tip="Copy everything that is shown (Ctrl+C: selected lines)")
        self.values_button = button("Show values", self._show_values)
        head = row(self.about, self.values_button, self.copy_button)
        head.setContentsMargins(GAP, GAP, GAP, GAP)
        head.setStretch(0, 1)
        content = QWidget()
        content.setLayout(column(head, self.tree, gap=0))
        self._empty = EmptyState("table")
        self._empty.say("Nothing selected", "Select an op or a block in the graph to see everything about it.")
        self._empty.tint(theme.colours.text_dim)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(content)
        self.setLayout(column(self._pages))
        self.setFocusProxy(self.tree)

    def update_from(self, document: Document) -> None:
        """Show the selected ops."""
        is_compared = document.comparison is not None
        groups = details_beside(document, details_of) if is_compared else details_of(document)
        self._pages.setCurrentIndex(1 if groups else 0)
        why = why_not(document) or ("" if len(document.selection.op_ids) == 1 else "Select a single op")
        self.values_button.setEnabled(not why)
        self.values_button.setToolTip(why or "What the op gives for an example, and its weights: float and compressed")
        if groups == self.groups:
            return
        self.groups = groups
        folded = set(self._folded)
        self.tree.clear()
        for group in groups:
            heading = QTreeWidgetItem([group.title])
            self.tree.addTopLevelItem(heading)
            heading.setFirstColumnSpanned(True)
            for line in group.lines:
                item = QTreeWidgetItem([line.name, line.value])
                item.setToolTip(
                    1, f"{line.value}\nDouble-click, or press Enter, to go there" if line.op_id else line.value
                )
                item.setData(0, _OP, line.op_id)
                heading.addChild(item)
            heading.setExpanded(group.title not in folded)
        self._folded = folded
        op_ids = document.selection.op_ids
        self.about.setText("" if not op_ids else op_ids[0] if len(op_ids) == 1 else f"{len(op_ids)} selected")

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)

    def _show_values(self) -> None:
        """Ask for the values; the chart shows them when they are there."""
        self.session.jobs.show_values(self.session.document.selection.op_ids[0])
        self.panel_wanted.emit("charts")

    def copy(self) -> None:
        """Copy the selected lines."""
        chosen = [item for item in self.tree.selectedItems() if item.parent() is not None]
        if chosen:
            QApplication.clipboard().setText("\n".join(f"{item.text(0)}\t{item.text(1)}" for item in chosen))

    def copy_all(self) -> None:
        """Copy everything that is shown."""
        QApplication.clipboard().setText(as_text(self.groups))

    def _go_to(self, item: QTreeWidgetItem) -> None:
        if item.data(0, _OP):
            self.session.view.select((item.data(0, _OP),))
