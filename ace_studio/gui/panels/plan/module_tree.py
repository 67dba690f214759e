"""The tree of modules and ops with check boxes: what is compressed, and at which precision."""

from collections.abc import Callable, Collection, Mapping, Sequence
from html import escape

from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QMenu, QToolButton, QTreeWidget, QTreeWidgetItem, QWidget

from ace_studio.gui.ops.facts import modules_inside, op_facts, texts_by_row
from ace_studio.gui.ops.precision_offers import Offer, fill_precisions, grey_out, op_offers
from ace_studio.gui.panels.plan.choosers import NoEditor, PrecisionCells
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import CLOSE, TIGHT, box, column, row
from ace_studio.gui.widgets.small import label, offer_menu, quiet, set_role, short_lived_menu, show_words, tip_text
from ace_studio.gui.widgets.table_look import plain_tree
from ace_studio.gui.widgets.table_model import AnyIndex
from ace_studio.gui.words.formatting import plural
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.plan_index import plan_index
from ace_studio.session.document import Document
from ace_studio.session.plan_rules import module_match
from ace_studio.session.session import Session

_PATH = int(Qt.ItemDataRole.UserRole)
_OP = int(Qt.ItemDataRole.UserRole) + 1
"""Id of the op that a row is; nothing for a module."""
_NAME, _PRECISION = 0, 1
_ROWS_SHOWN = 11
_OPS_AT_ONCE = 500
_HIGH = str(Precision.FP32)


class ModuleTree(QWidget):
    """A ticked row is compressed. A module with some compressed ops has a dash."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._graph: GraphTable | None = None
        self._shown: object = None
        self._offers: Mapping[str, Offer] = {}
        self._items: dict[str, QTreeWidgetItem] = {}
        self._op_items: dict[str, QTreeWidgetItem] = {}
        """Rows of the ops whose module was opened."""
        self._rows_in: Mapping[str, list[int]] = {}
        """Module with ops -> their rows, also of those in the modules in it."""
        self._unlisted: dict[str, list[int]] = {}
        """Module -> those of its rows that the tree does not list yet."""
        self._inside: dict[str, Sequence[str]] = {}
        """Module that was not opened -> modules directly in it."""
        self._types: dict[str, str] = {}
        self.tree = self._make_tree()
        low = [(str(each), str(each)) for each in Precision if each is not Precision.FP32]
        self.ticks = ComboBox(tr("Precision of modules that are ticked"), low, chosen=self._choose_ticks)
        self._follows_plan = True
        """Whether ticks give the plan's precision; not after the user chose another one."""
        self._note = label("", "dim")
        self._line = box(row(label(tr("New ticks get"), "dim", wrap=False), self.ticks, None, gap=CLOSE))
        self.about_ops = OpNote()
        self.setLayout(column(self._note, self.tree, self.about_ops, self._line, gap=CLOSE))

    def _make_tree(self) -> QTreeWidget:
        tree = plain_tree(tr("Modules: what is ticked is compressed"), [tr("compress"), tr("precision")])
        tree.setIndentation(14)
        tree.setAllColumnsShowFocus(True)
        triggers = QAbstractItemView.EditTrigger
        tree.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        tree.setExpandsOnDoubleClick(False)
        cells = PrecisionCells(
            tree,
            name=tr("Precision of the module"),
            offers=lambda index: self._offers_of(self._item_at(index)),
            choose=self._choose,
            can_clear=tr("as the plan says"),
        )
        tree.setItemDelegateForColumn(_NAME, NoEditor(tree))
        tree.setItemDelegateForColumn(_PRECISION, cells)
        header = tree.header()
        header.setSectionResizeMode(_PRECISION, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(_PRECISION, self.fontMetrics().horizontalAdvance("int8-dynamic") + 26)
        tree.itemChanged.connect(self._ticked)
        tree.itemExpanded.connect(self._opened)
        tree.currentItemChanged.connect(lambda item, _: self._went_to(item))
        tree.itemCollapsed.connect(lambda _: self._fit_height())
        offer_menu(tree, self._menu)
        return tree

    def update_from(self, document: Document, offers: Mapping[str, Offer]) -> None:
        """Show ticks and precisions."""
        self._offers = offers
        grey_out(self.ticks, offers)
        if self._follows_plan:
            default = document.recipe.plan.default
            low = Precision.INT8_STATIC if default is Precision.FP32 else default
            self.ticks.setCurrentIndex(self.ticks.findData(str(low)))
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
        show_words(self._note, _note(document))
        self.show_selection(document)

    def show_selection(self, document: Document) -> None:
        """Go to the selected op, if its module was opened, and show its possible precisions."""
        op_ids = document.selection.op_ids
        item = self._op_items.get(op_ids[0]) if len(op_ids) == 1 else None
        if item is not None and item is not self.tree.currentItem():
            with quiet(self.tree):
                self.tree.setCurrentItem(item)
        self.about_ops.update_from(document)

    def _fill(self, graph: GraphTable | None) -> None:
        """List what is open at first; the rest is listed when its module is opened."""
        self.tree.clear()
        self._items, self._op_items, self._rows_in, self._inside = {}, {}, {}, {}
        if graph is None:
            return
        self._rows_in = plan_index(graph).inside
        self._unlisted = dict(plan_index(graph).by_path)
        self._types = dict(zip(graph.module_paths, graph.module_types, strict=True))
        self._inside = dict(modules_inside(graph))
        root = self._items[""] = self._item("", graph.name or "model", "")
        self.tree.addTopLevelItem(root)
        root.setExpanded(True)
        self._list(root)
        only = root.child(0) if root.childCount() == 1 else None
        if only is not None:
            only.setExpanded(True)
            self._list(only)
        self._fit_height()

    def _opened(self, item: QTreeWidgetItem) -> None:
        """The modules and ops of a module are listed when it is opened."""
        if self._list(item):
            self._shown = None
            self.update_from(self._session.document, self._offers)
        self._fit_height()

    def _list(self, item: QTreeWidgetItem) -> bool:
        """List the modules and ops directly in a module, `_OPS_AT_ONCE` at a time; False if all are listed already."""
        graph, path = self._graph, item.data(_NAME, _PATH)
        inner = [one for one in self._inside.pop(path, ()) if one in self._rows_in]
        rows = self._unlisted.pop(path, [])
        if graph is None or item.data(_NAME, _OP) or not (inner or rows):
            return False
        with quiet(self.tree):
            for one in inner:
                made = self._items[one] = self._item(one, one.rpartition(".")[2], self._types[one])
                made.setChildIndicatorPolicy(QTreeWidgetItem.ChildIndicatorPolicy.ShowIndicator)
                item.addChild(made)
            for at in rows[:_OPS_AT_ONCE]:
                op_id = graph.op_id[at]
                made = self._op_items[op_id] = self._item(path, op_id, "")
                made.setData(_NAME, _OP, op_id)
                made.setToolTip(_NAME, tip_text(graph.op[at]))
                item.addChild(made)
            if rows[_OPS_AT_ONCE:]:
                self._unlisted[path] = rows[_OPS_AT_ONCE:]
                more = QTreeWidgetItem([f"… {plural(len(rows) - _OPS_AT_ONCE, tr('more op'))}", ""])
                more.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
                item.addChild(more)
        return True

    def _fit_height(self) -> None:
        """Fit the height to the open rows, within limits."""
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
        item.setToolTip(_NAME, tip_text(path))
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsEditable)
        return item

    def _show(self, graph: GraphTable, planned: Mapping[str, str], *, can_tick: bool) -> None:
        texts = texts_by_row(graph, planned)
        for path, item in self._items.items():
            kinds = set(texts) - {""} if not path else set(map(texts.__getitem__, self._rows_in[path]))
            _mark(item, kinds, can_tick=can_tick)
        for op_id, item in self._op_items.items():
            _mark(item, {planned.get(op_id, "")}, can_tick=can_tick)

    # --- gestures ---

    def _choose_ticks(self) -> None:
        self._follows_plan = False

    def _ticked(self, item: QTreeWidgetItem, place: int) -> None:
        if place == _NAME:
            # The box shows the document, not what Qt made of the click.
            self._shown = None
            precision = Precision(self.ticks.currentData())
            is_on = item.checkState(_NAME) is not Qt.CheckState.Unchecked
            before = self._session.document.recipe.plan
            op_id = item.data(_NAME, _OP)
            if op_id:
                self._session.plan.set_precision_of_ops((op_id,), precision if is_on else Precision.FP32)
            else:
                self._session.plan.tick_module(item.data(_NAME, _PATH), on=is_on, precision=precision)
            if self._session.document.recipe.plan is before:
                self.update_from(self._session.document, self._offers)

    def _choose(self, place: QModelIndex, precision: Precision | None) -> None:
        self._choice_of(self._item_at(place))(precision)

    def _choice_of(self, item: QTreeWidgetItem) -> Callable[[Precision | None], None]:
        """The rule or default that sets the precision of a row."""
        op_id, path = item.data(_NAME, _OP), item.data(_NAME, _PATH)
        if op_id:
            return lambda precision: self._session.plan.set_precision_of_ops((op_id,), precision)
        return lambda precision: self._session.plan.set_precision_of_module(path, precision)

    def _item_at(self, place: AnyIndex) -> QTreeWidgetItem:
        return self.tree.itemFromIndex(place)

    def _offers_of(self, item: QTreeWidgetItem) -> Mapping[str, Offer]:
        """The possible precisions of an op, or of any op of a module."""
        graph, op_id = self._graph, item.data(_NAME, _OP)
        if op_id or graph is None:
            return op_offers(self._session.document, (op_id,) if op_id else ())
        rows = plan_index(graph).rows_of(module_match(item.data(_NAME, _PATH)))
        return op_offers(self._session.document, [graph.op_id[row] for row in rows])

    def _went_to(self, item: QTreeWidgetItem | None) -> None:
        if item is None:
            return
        if item.data(_NAME, _OP):
            self._session.view.select((item.data(_NAME, _OP),))
        elif item.data(_NAME, _PATH) is None:
            self._list_more(item)

    def _list_more(self, item: QTreeWidgetItem) -> None:
        """List the next ops in the place of the row that says how many more there are."""
        around = item.parent() or self.tree.invisibleRootItem()
        place = around.indexOfChild(item)
        with quiet(self.tree):
            around.removeChild(item)
        self._opened(around)
        with quiet(self.tree):
            self.tree.setCurrentItem(around.child(place) or around)

    def _menu(self, place: QPoint) -> QMenu | None:
        item = self.tree.itemAt(place) or self.tree.currentItem()
        if item is None or not item.flags() & Qt.ItemFlag.ItemIsUserCheckable:
            return None
        menu = short_lived_menu(self)
        fill_precisions(menu, self._offers_of(item), self._choice_of(item))
        return menu


def _mark(item: QTreeWidgetItem, kinds: Collection[str], *, can_tick: bool) -> None:
    """Tick, precision and whether they can be chosen."""
    is_some = _HIGH in kinds and len(kinds) > 1
    state = Qt.CheckState.PartiallyChecked if is_some else Qt.CheckState.Checked
    shown = Qt.CheckState.Unchecked if set(kinds) <= {_HIGH, ""} else state
    # Where nothing is planned yet, an empty box that takes no click would say that nothing is compressed.
    is_known = can_tick or bool(set(kinds) - {""})
    item.setData(_NAME, Qt.ItemDataRole.CheckStateRole, shown if is_known else None)
    item.setText(_PRECISION, tr("mixed") if len(kinds) > 1 else next(iter(kinds), ""))
    item.setToolTip(_PRECISION, ", ".join(sorted(kinds)))
    usual = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
    tick = Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsEditable
    item.setFlags(usual | tick if can_tick else usual)


def _note(document: Document) -> str:
    if document.graph is None:
        return tr("Trace the model to choose by module.")
    if document.recipe.plan.from_goal:
        return tr("Choose a precision above to tick modules by hand.")
    return ""


class OpNote(QWidget):
    """A few lines below the modules; hidden unless a precision is refused for the selected ops."""

    def __init__(self) -> None:
        super().__init__()
        self.words = label("", "dim")
        self.why = QToolButton(autoRaise=True)
        self.why.setCheckable(True)
        self.why.setProperty("role", "fold")
        self.why.toggled.connect(lambda _: self._fold())
        self.reasons = label("", "dim")
        self.reasons.setTextFormat(Qt.TextFormat.RichText)
        self.setLayout(column(self.words, self.why, self.reasons, gap=TIGHT))
        self.hide()

    def update_from(self, document: Document) -> None:
        """Say it of the selected ops."""
        op_ids = document.selection.op_ids
        offers = op_offers(document, op_ids) if op_ids else {}
        refused = {name: offer for name, offer in offers.items() if offer.words}
        self.setVisible(bool(refused))
        if refused:
            named = op_ids[0] if len(op_ids) == 1 else plural(len(op_ids), tr("selected op"))
            possible = ", ".join(name for name, offer in offers.items() if offer.is_possible)
            in_vain = _planned_in_vain(document, offers)
            self.words.setText(
                tr(
                    "{named}: {in_vain}possible: {precisions}.",
                    named=named,
                    in_vain=in_vain,
                    precisions=possible or tr("no precision"),
                )
            )
            set_role(self.words, "warn" if in_vain else "dim")
            self.reasons.setText(reasons_of(refused))
            self._fold()

    def _fold(self) -> None:
        is_open = self.why.isChecked()
        self.why.setText(f"{'▾' if is_open else '▸'}  {tr('What the targets refuse, and why')}")
        self.reasons.setVisible(is_open)


def _planned_in_vain(document: Document, offers: dict[str, Offer]) -> str:
    """A planned precision of the selected ops that no chosen target supports, in words."""
    planned = op_facts(document).planned
    wanted = {planned[op_id] for op_id in document.selection.op_ids if op_id in planned}
    refused = [name for name in sorted(wanted) if name in offers and not offers[name].is_possible]
    return (
        tr(
            "planned at {names}, which no chosen target supports, so it stays in floating point. ",
            names=", ".join(refused),
        )
        if refused
        else ""
    )


def reasons_of(refused: dict[str, Offer]) -> str:
    """A paragraph per precision, a line per reason with the targets that give it; as rich text.

    Precisions that no target supports come first.
    """
    parts = []
    for name, offer in sorted(refused.items(), key=lambda pair: pair[1].is_possible):
        targets: dict[str, list[str]] = {}
        for target, why in offer.why_not.items():
            targets.setdefault(why, []).append(target)
        head = f"<b>{escape(name)}</b>{tr(': other targets can') if offer.is_possible else ''}"
        lines = "".join(
            f"<p style='margin:0 0 2px 12px'>{escape(', '.join(names))}: {escape(why)}</p>"
            for why, names in targets.items()
        )
        parts.append(f"<p style='margin:4px 0 1px 0'>{head}</p>{lines}")
    return "".join(parts)
