"""The modules panel: the tree of modules with ops, weights and FLOPs."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
)

from ace_studio.gui.ops.facts import row_of_ops
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import EmptyState, column, quiet
from ace_studio.gui.words.formatting import bytes_text, count_text
from ace_studio.records.graph import GraphTable
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_NUMBER_COLUMNS = (1, 2, 3)
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_PATH = int(Qt.ItemDataRole.UserRole)


def ancestors(path: str) -> Iterable[str]:
    """The path and every path above it, the root (empty) last."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


def _with_parents(own: dict[str, list[int]]) -> dict[str, list[int]]:
    """Add the sums of inner modules to every module."""
    total: dict[str, list[int]] = {}
    for path, sums in own.items():
        for above in ancestors(path):
            total[above] = [old + new for old, new in zip(total.get(above, (0, 0, 0)), sums, strict=True)]
    return total


class _Numbers(QStyledItemDelegate):
    """Aligns numbers right, once for the column; per item it would dominate the time."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:  # noqa: N802 - Qt's name
        super().initStyleOption(option, index)
        option.displayAlignment = _RIGHT


class ModulesPanel(Panel):
    """Modules with ops, weights and FLOPs below them; selecting one selects its ops everywhere."""

    title = "Modules"
    shows = frozenset({Part.GRAPH, Part.SELECTION})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start empty."""
        super().__init__(session, theme)
        self._shown: GraphTable | None = None
        self._items: dict[str, QTreeWidgetItem] = {}
        self._ops: dict[str, list[str]] = {}
        self.tree = QTreeWidget()
        self.tree.setAccessibleName("Modules")
        self.tree.setHeaderLabels(["module", "ops", "weights", "FLOPs"])
        self.tree.setUniformRowHeights(True)
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.tree.setAllColumnsShowFocus(True)
        self.tree.setIndentation(14)
        self._numbers = _Numbers(self.tree)
        header = self.tree.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for at in _NUMBER_COLUMNS:
            self.tree.headerItem().setTextAlignment(at, _RIGHT)
            self.tree.setItemDelegateForColumn(at, self._numbers)
            header.setSectionResizeMode(at, QHeaderView.ResizeMode.ResizeToContents)
        self.tree.itemSelectionChanged.connect(self._tell_selection)
        self._empty = EmptyState("graph")
        self._empty.say("No modules yet", "Trace the model to see them.")
        self._empty.tint(theme.colours.text_dim)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(self.tree)
        self.setLayout(column(self._pages))
        self.setFocusProxy(self.tree)

    def update_from(self, document: Document) -> None:
        """Show modules and selection."""
        self._pages.setCurrentIndex(1 if document.graph else 0)
        if document.graph is not self._shown:
            self._shown = document.graph
            with quiet(self.tree):
                self._fill(document.graph)
        if document.graph is not None:
            self._show_selection(document)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)

    def _fill(self, table: GraphTable | None) -> None:
        self.tree.clear()
        self._items, self._ops = {}, {}
        if table is None:
            return
        own: dict[str, list[int]] = {}
        for at in table.op_rows():
            sums = own.setdefault(table.module[at], [0, 0, 0])
            sums[0] += 1
            sums[1] += table.weight_bytes[at]
            sums[2] += table.flops[at]
            self._ops.setdefault(table.module[at], []).append(table.op_id[at])
        costs = _with_parents(own)
        types = dict(zip(table.module_paths, table.module_types, strict=True))
        root = self._item("", table.name or "model", costs)
        self.tree.addTopLevelItem(root)
        for path in table.module_paths:
            parent, _, name = path.rpartition(".")
            words = f"{name}  {types[path]}" if types[path] else name
            self._items.get(parent, root).addChild(self._item(path, words, costs))
        root.setExpanded(True)
        for child in (root.child(at) for at in range(root.childCount())):
            if child is not None:
                child.setExpanded(root.childCount() <= 4)

    def _item(self, path: str, words: str, costs: dict[str, list[int]]) -> QTreeWidgetItem:
        ops, weights, flops = costs.get(path, [0, 0, 0])
        item = QTreeWidgetItem(
            [words, str(ops), bytes_text(weights) if weights else "", count_text(flops) if flops else ""]
        )
        item.setData(0, _PATH, path)
        self._items[path] = item
        return item

    def _tell_selection(self) -> None:
        if self._shown is not None:
            rows = row_of_ops(self._shown)
            self.session.view.select(sorted(self._ops_of_selected(), key=rows.__getitem__))

    def _ops_of_selected(self) -> set[str]:
        """The ops of the selected modules and of all modules inside them."""
        chosen = {item.data(0, _PATH) for item in self.tree.selectedItems()}
        below = (path for path in self._ops if not chosen.isdisjoint(ancestors(path)))
        return {op_id for path in below for op_id in self._ops[path]}

    def _show_selection(self, document: Document) -> None:
        table, op_ids = document.graph, document.selection.op_ids
        if table is None:
            return
        if self._ops_of_selected() == set(op_ids):
            return
        rows = row_of_ops(table)
        paths = {table.module[rows[op_id]] for op_id in op_ids[:200]}
        with quiet(self.tree):
            self.tree.clearSelection()
            for path in paths & self._items.keys():
                self._items[path].setSelected(True)
                self.tree.scrollToItem(self._items[path])
        self.tree.viewport().update()
