"""The modules with a tick each: what is compressed and what is kept, and at which precision."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QHeaderView, QMenu, QTreeWidget, QTreeWidgetItem, QWidget

from ace_studio.gui.op_facts import op_facts
from ace_studio.gui.plan_form.choosers import NoEditor, PrecisionCells
from ace_studio.gui.plan_form.offers import Offer, grey_out
from ace_studio.gui.precision_menu import fill_precisions
from ace_studio.gui.widgets import column, label, quiet, row
from ace_studio.records.graph import GraphTable
from ace_studio.records.plan import Precision
from ace_studio.session.document import Document
from ace_studio.session.session import Session

_PATH = int(Qt.ItemDataRole.UserRole)
_NAME, _PRECISION = 0, 1
_ROWS_SHOWN = 11
_HIGH = str(Precision.FP32)


class ModuleTree(QWidget):
    """A tick means: compressed. A module some of whose ops are has a dash."""

    def __init__(self, session: Session) -> None:
        """Start empty."""
        super().__init__()
        self._session = session
        self._graph: GraphTable | None = None
        self._shown: object = None
        self._offers: Mapping[str, Offer] = {}
        self._items: dict[str, QTreeWidgetItem] = {}
        self.tree = QTreeWidget()
        self.tree.setAccessibleName("Modules: what is ticked is compressed")
        self.tree.setHeaderLabels(["compress", "precision"])
        self.tree.setUniformRowHeights(True)
        self.tree.setIndentation(14)
        self.tree.setAllColumnsShowFocus(True)
        triggers = QAbstractItemView.EditTrigger
        self.tree.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.tree.setExpandsOnDoubleClick(False)
        cells = PrecisionCells(
            self.tree,
            name="Precision of the module",
            offers=lambda: self._offers,
            choose=self._choose,
            can_clear="as the plan says",
        )
        self.tree.setItemDelegateForColumn(_NAME, NoEditor(self.tree))
        self.tree.setItemDelegateForColumn(_PRECISION, cells)
        header = self.tree.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(_NAME, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(_PRECISION, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(_PRECISION, self.fontMetrics().horizontalAdvance("int8-dynamic") + 26)
        self.tree.itemChanged.connect(self._ticked)
        self.tree.itemExpanded.connect(lambda _: self._fit_height())
        self.tree.itemCollapsed.connect(lambda _: self._fit_height())
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._open_menu)
        self.ticks = QComboBox()
        self.ticks.setAccessibleName("Precision of modules that are ticked")
        for each in Precision:
            if each is not Precision.FP32:
                self.ticks.addItem(str(each), str(each))
        self.ticks.setCurrentIndex(self.ticks.findData(str(Precision.INT8_STATIC)))
        self._note = label("", "dim")
        self._line = QWidget()
        self._line.setLayout(row(label("Tick means", "dim", wrap=False), self.ticks, None, gap=6))
        self.setLayout(column(self._note, self.tree, self._line, gap=6))

    def update_from(self, document: Document, offers: Mapping[str, Offer]) -> None:
        """Show ticks and precisions."""
        self._offers = offers
        grey_out(self.ticks, offers)
        graph = document.graph
        if graph is not self._graph:
            self._graph, self._shown = graph, None
            with quiet(self.tree):
                self._fill(graph)
        has_modules = graph is not None and graph.op_count > 0
        self.tree.setVisible(has_modules)
        is_open = has_modules and not document.recipe.plan.from_goal
        self._line.setVisible(is_open)
        facts = op_facts(document)
        if graph is not None and facts is not self._shown:
            self._shown = facts
            with quiet(self.tree):
                self._show(graph, facts.planned, can_tick=is_open)
        self._note.setText(_note(document))
        self._note.setVisible(bool(self._note.text()))

    def _fill(self, graph: GraphTable | None) -> None:
        self.tree.clear()
        self._items = {}
        if graph is None:
            return
        types = dict(zip(graph.module_paths, graph.module_types, strict=True))
        used = {above for at in graph.op_rows() for above in _chain(graph.module[at])}
        root = self._items[""] = self._item("", graph.name or "model", "")
        self.tree.addTopLevelItem(root)
        for path in graph.module_paths:
            if path in used:
                parent, _, name = path.rpartition(".")
                item = self._items[path] = self._item(path, name, types[path])
                self._items.get(parent, root).addChild(item)
        root.setExpanded(True)
        only = root.child(0) if root.childCount() == 1 else None
        if only is not None:
            only.setExpanded(True)
        self._fit_height()

    def _fit_height(self) -> None:
        """As high as what is unfolded, within limits."""
        shown = 0
        item = self.tree.topLevelItem(0)
        while item is not None and shown < _ROWS_SHOWN:
            shown += 1
            item = self.tree.itemBelow(item)
        row_height = max(self.fontMetrics().height() + 4, self.tree.sizeHintForRow(0))
        self.tree.setFixedHeight(max(3, shown) * row_height + self.tree.header().sizeHint().height() + 6)

    def _item(self, path: str, name: str, kind: str) -> QTreeWidgetItem:
        item = QTreeWidgetItem([f"{name}  {kind}".rstrip(), ""])
        item.setData(_NAME, _PATH, path)
        item.setToolTip(_NAME, path)
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsEditable)
        return item

    def _show(self, graph: GraphTable, planned: Mapping[str, str], *, can_tick: bool) -> None:
        found: dict[str, set[str]] = {}
        for at in graph.op_rows():
            precision = planned.get(graph.op_id[at], "")
            for path in _chain(graph.module[at]):
                found.setdefault(path, set()).add(precision)
        for path, item in self._items.items():
            kinds = found.get(path, set())
            is_some = _HIGH in kinds and len(kinds) > 1
            state = Qt.CheckState.PartiallyChecked if is_some else Qt.CheckState.Checked
            item.setCheckState(_NAME, Qt.CheckState.Unchecked if kinds <= {_HIGH, ""} else state)
            item.setText(_PRECISION, next(iter(kinds), "") if len(kinds) == 1 else "mixed")
            item.setToolTip(_PRECISION, ", ".join(sorted(kinds)))
            usual = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
            tick = Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsEditable
            item.setFlags(usual | tick if can_tick else usual)

    # --- gestures ---

    def _ticked(self, item: QTreeWidgetItem, place: int) -> None:
        if place == _NAME:
            # What the box shows now is what the document says, not what Qt made of the click.
            self._shown = None
            precision = Precision(self.ticks.currentData())
            is_on = item.checkState(_NAME) is not Qt.CheckState.Unchecked
            before = self._session.document.recipe.plan
            self._session.tick_module(item.data(_NAME, _PATH), on=is_on, precision=precision)
            if self._session.document.recipe.plan is before:
                self.update_from(self._session.document, self._offers)

    def _choose(self, place: QModelIndex, precision: Precision | None) -> None:
        item = self.tree.itemFromIndex(place)
        self._session.set_precision_of_module(item.data(_NAME, _PATH), precision)

    def _open_menu(self, place: QPoint) -> None:
        item = self.tree.itemAt(place) or self.tree.currentItem()
        if item is None or not item.flags() & Qt.ItemFlag.ItemIsUserCheckable:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        path = item.data(_NAME, _PATH)
        fill_precisions(menu, self._offers, lambda precision: self._session.set_precision_of_module(path, precision))
        menu.popup(self.tree.viewport().mapToGlobal(place))


def _chain(path: str) -> list[str]:
    """The module and all around it, the root last."""
    found = [path]
    while path:
        path = path.rpartition(".")[0]
        found.append(path)
    return found


def _note(document: Document) -> str:
    if document.graph is None:
        return "Trace the model to choose by module."
    if document.recipe.plan.from_goal:
        return "The goal chooses. Choose a precision above to tick modules by hand."
    return ""
