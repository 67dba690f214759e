"""The modules panel: the tree of modules with ops, weights and FLOPs."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QStyledItemDelegate, QStyleOptionViewItem, QTreeWidgetItem

from ace_studio.gui.ops.facts import modules_inside, row_of_ops
from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import quiet
from ace_studio.gui.widgets.table_look import plain_tree
from ace_studio.gui.words.formatting import bytes_text, count_text
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan_index import ancestors, plan_index
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_NUMBER_COLUMNS = (1, 2, 3)
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_PATH = int(Qt.ItemDataRole.UserRole)


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
        super().__init__(session, theme)
        self._shown: GraphTable | None = None
        self._items: dict[str, QTreeWidgetItem] = {}
        self._rows: Mapping[str, list[int]] = {}
        """Module -> rows of the ops in it and in the modules in it."""
        self._summed: tuple[Sequence[int], Sequence[int]] = ((), ())
        """[rows] Bytes of weights, and FLOPs."""
        self._types: Mapping[str, str] = {}
        self._inside: dict[str, Sequence[str]] = {}
        """Module that was not opened -> modules directly in it."""
        self.tree = plain_tree(tr("Modules"), [tr("module"), tr("ops"), tr("weights"), tr("FLOPs")])
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.tree.setAllColumnsShowFocus(True)
        self.tree.setIndentation(14)
        self._numbers = _Numbers(self.tree)
        for at in _NUMBER_COLUMNS:
            self.tree.headerItem().setTextAlignment(at, _RIGHT)
            self.tree.setItemDelegateForColumn(at, self._numbers)
        self.tree.itemExpanded.connect(self._list)
        self.tree.itemSelectionChanged.connect(self._tell_selection)
        self.show_pages("graph", self.tree)
        self._empty.say(tr("No modules yet"), tr("Trace the model to see them."))
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

    def _fill(self, table: GraphTable | None) -> None:
        """List what is open at first; the rest is listed when its module is opened."""
        self.tree.clear()
        self._items, self._rows, self._inside = {}, {}, {}
        if table is None:
            return
        self._rows, self._summed = plan_index(table).inside, (table.weight_bytes, table.flops)
        self._types = dict(zip(table.module_paths, table.module_types, strict=True))
        self._inside = dict(modules_inside(table))
        root = self._item("", table.name or "model")
        self.tree.addTopLevelItem(root)
        root.setExpanded(True)
        self._list(root)
        for child in (root.child(at) for at in range(root.childCount())):
            if child is not None and root.childCount() <= 4:
                child.setExpanded(True)
                self._list(child)

    def _list(self, item: QTreeWidgetItem) -> None:
        """List the modules directly in a module, if that was not done yet."""
        for path in self._inside.pop(item.data(0, _PATH), ()):
            name, kind = path.rpartition(".")[2], self._types[path]
            made = self._item(path, f"{name}  {kind}" if kind else name)
            if path in self._inside:
                made.setChildIndicatorPolicy(QTreeWidgetItem.ChildIndicatorPolicy.ShowIndicator)
            item.addChild(made)

    def _item_of(self, path: str) -> QTreeWidgetItem | None:
        """The item of a module; what contains it is listed first."""
        for above in reversed(tuple(ancestors(path))):
            if above in self._items and above != path:
                self._list(self._items[above])
        return self._items.get(path)

    def _item(self, path: str, words: str) -> QTreeWidgetItem:
        rows = self._rows.get(path, ())
        weights, flops = (sum(map(values.__getitem__, rows)) for values in self._summed)
        item = QTreeWidgetItem(
            [words, str(len(rows)), bytes_text(weights) if weights else "", count_text(flops) if flops else ""]
        )
        item.setData(0, _PATH, path)
        self._items[path] = item
        return item

    def _tell_selection(self) -> None:
        if self._shown is not None:
            self.session.view.select([self._shown.op_id[row] for row in sorted(self._rows_of_selected())])

    def _rows_of_selected(self) -> set[int]:
        """Rows of the ops of the selected modules and of all modules inside them."""
        return set().union(*(self._rows.get(item.data(0, _PATH), ()) for item in self.tree.selectedItems()))

    def _show_selection(self, document: Document) -> None:
        table, op_ids = document.graph, document.selection.op_ids
        if table is None:
            return
        if self._rows_of_selected() == set(plan_index(table).rows_of_ops(op_ids)):
            return
        rows = row_of_ops(table)
        paths = {table.module[rows[op_id]] for op_id in op_ids[:200]}
        with quiet(self.tree):
            self.tree.clearSelection()
            for item in filter(None, map(self._item_of, paths)):
                item.setSelected(True)
                self.tree.scrollToItem(item)
        self.tree.viewport().update()
