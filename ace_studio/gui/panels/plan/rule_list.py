"""The rules of the plan as a table: pattern, precision, and the ops that each matches."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QMenu, QTableView, QWidget

from ace_studio.gui.ops.precision_offers import Offer, grey_out
from ace_studio.gui.panels.plan.choosers import PrecisionCells
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import CLOSE, box, column, row
from ace_studio.gui.widgets.small import button, label, offer_menu, on_key, short_lived_menu, show_words, text_field
from ace_studio.gui.widgets.table_look import plain_table
from ace_studio.gui.widgets.table_model import AnyIndex
from ace_studio.gui.words.formatting import plural
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import ActivationGrid, PlanRule, Precision, WeightGranularity, rule_problem
from ace_studio.records.recipes.plan_index import plan_index
from ace_studio.session.document import Document
from ace_studio.session.session import Session

_MATCH, _PRECISION, _COUNT = range(3)
_TITLES = (
    ("rule", tr("module:, op:, type: or id:, and a pattern")),
    ("precision", ""),
    ("ops", tr("Ops that the rule decides / ops that it matches")),
)
_ROWS_SHOWN = 7
_NO_INDEX = QModelIndex()
_DISPLAY, _TIP = int(Qt.ItemDataRole.DisplayRole), int(Qt.ItemDataRole.ToolTipRole)
_AS_PLANNED: tuple[str, object] = (tr("as the plan says"), None)
_GRIDS: dict[str, tuple[str, tuple[tuple[str, object], ...]]] = {
    "weights": (tr("Weights of this rule"), (_AS_PLANNED, *((str(each), each) for each in WeightGranularity))),
    "activations": (tr("Activations of this rule"), (_AS_PLANNED, *((str(each), each) for each in ActivationGrid))),
    "group_size": (
        tr("Group size of this rule"),
        (_AS_PLANNED, (tr("whole channels"), 0), *((str(2**power), 2**power) for power in range(4, 9))),
    ),
}
"""Key of a rule -> its submenu."""


class _Rules(QAbstractTableModel):
    """The rules as a table. Cells are made when they are seen: a plan may have 20,000 rules."""

    written = Signal(int, str)
    """Row and text of a pattern that was edited in place."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: tuple[PlanRule, ...] = ()
        self.counts: Sequence[tuple[int, int]] = ()
        """Of each rule: how many ops it matches, and how many of them it decides. Empty without a graph."""

    def show(self, rules: tuple[PlanRule, ...], counts: Sequence[tuple[int, int]]) -> None:
        """Show other rules; the current row stays where it is."""
        old, new = len(self.rules), len(rules)
        if new > old:
            self.beginInsertRows(_NO_INDEX, old, new - 1)
        elif new < old:
            self.beginRemoveRows(_NO_INDEX, new, old - 1)
        self.rules, self.counts = rules, counts
        if new > old:
            self.endInsertRows()
        elif new < old:
            self.endRemoveRows()
        if rules:
            self.dataChanged.emit(self.index(0, 0), self.index(new - 1, _COUNT))

    def rowCount(self, parent: AnyIndex = _NO_INDEX) -> int:  # noqa: N802 - Qt's name
        return 0 if parent.isValid() else len(self.rules)

    def columnCount(self, parent: AnyIndex = _NO_INDEX) -> int:  # noqa: N802 - Qt's name
        return 0 if parent.isValid() else len(_TITLES)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:  # noqa: N802 - Qt's name
        if orientation is Qt.Orientation.Vertical or role not in (_DISPLAY, _TIP):
            return None
        return _TITLES[section][role == _TIP]

    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        usual = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return usual if index.column() == _COUNT else usual | Qt.ItemFlag.ItemIsEditable

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role not in (_DISPLAY, Qt.ItemDataRole.EditRole, _TIP):
            return None
        rule = self.rules[index.row()]
        if index.column() == _MATCH:
            return rule.match
        if index.column() == _PRECISION:
            return _grid_words(rule) if role == _TIP else str(rule.precision)
        if not self.counts:
            return ""
        matched, decided = self.counts[index.row()]
        words = str(decided) if decided == matched else f"{decided} / {matched}"
        return _count_words(matched, decided) if role == _TIP else words

    def setData(self, index: AnyIndex, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802 - Qt's name
        del role
        self.written.emit(index.row(), str(value).strip())
        return True


class RuleList(QWidget):
    """Rules can be added, edited, moved and removed; later ones win."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._shown: tuple[object, object] = (None, None)
        self._offers: Mapping[str, Offer] = {}
        self._model = _Rules()
        self.table = self._make_table()
        self.up = button("↑", lambda: self._move(-1), tip=tr("Earlier: rules below win over it (Alt+Up)"))
        self.down = button("↓", lambda: self._move(1), tip=tr("Later: it wins over the rules above (Alt+Down)"))
        self.remove = button(tr("Remove"), self._remove, tip=tr("Remove the rule (Del)"))
        self.up.setAccessibleName(tr("Move the rule up"))
        self.down.setAccessibleName(tr("Move the rule down"))
        self.remove.setAccessibleName(tr("Remove the rule"))
        self.match = text_field(tr("Pattern of the new rule"), tr("New rule: module:layer1.*"))
        self.match.setToolTip(tr("module:layer1.*   op:aten.conv2d.default   type:Linear   id:conv2d_3"))
        self.match.returnPressed.connect(self._add)
        self.match.textChanged.connect(lambda _: self._preview())
        self.precision = ComboBox(tr("Precision of the new rule"), [(str(each), str(each)) for each in Precision])
        self.add_button = button(tr("Add"), self._add, tip=tr("Add the rule at the end, where it wins"))
        self.add_button.setAccessibleName(tr("Add the rule"))
        self.preview = label("", "dim")
        self._tools = box(row(self.up, self.down, self.remove, None, gap=CLOSE))
        new = row(self.precision, self.add_button, None, gap=CLOSE)
        self.setLayout(column(self.table, self._tools, self.match, self.preview, new, gap=CLOSE))

    def _make_table(self) -> QTableView:
        table = plain_table(self._model, tr("Rules; later ones win"))
        table.setSortingEnabled(False)  # their order counts
        on_key(table, "Alt+Up", lambda: self._move(-1))
        on_key(table, "Alt+Down", lambda: self._move(1))
        on_key(table, "Del", self._remove)
        triggers = QAbstractItemView.EditTrigger
        table.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        cells = PrecisionCells(
            table, name=tr("Precision of the rule"), offers=lambda _: self._offers, choose=self._choose
        )
        table.setItemDelegateForColumn(_PRECISION, cells)
        header = table.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(_MATCH, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(_PRECISION, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(_PRECISION, self.fontMetrics().horizontalAdvance("int8-dynamic") + 22)
        header.setSectionResizeMode(_COUNT, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(_COUNT, self.fontMetrics().horizontalAdvance("20000 / 20000") + 12)
        self._model.written.connect(self._written)
        table.selectionModel().currentChanged.connect(lambda *_: self._show_tools())
        offer_menu(table, lambda _: self.menu())
        return table

    def update_from(self, document: Document, offers: Mapping[str, Offer]) -> None:
        """Show the rules."""
        self._offers = offers
        rules, graph = document.recipe.plan.rules, document.graph
        if self._shown[0] is not rules or self._shown[1] is not graph:
            self._shown = (rules, graph)
            self._fill(document)
            self._preview()
        grey_out(self.precision, offers)
        self._show_tools()

    def _fill(self, document: Document) -> None:
        plan, graph = document.recipe.plan, document.graph
        self._model.show(plan.rules, plan_index(graph).counts(plan) if graph is not None else ())
        shown = min(_ROWS_SHOWN, len(plan.rules))
        height = self.table.verticalHeader().defaultSectionSize()
        self.table.setFixedHeight(shown * height + self.table.horizontalHeader().sizeHint().height() + 4)
        self.table.setVisible(bool(plan.rules))
        self._tools.setVisible(bool(plan.rules))

    def _show_tools(self) -> None:
        at, count = self._current(), len(self._rules())
        self.up.setEnabled(0 < at < count)
        self.down.setEnabled(0 <= at < count - 1)
        self.remove.setEnabled(0 <= at < count)

    # --- gestures ---

    def _written(self, row: int, match: str) -> None:
        """Take over a pattern that was edited in place; an invalid one is reported, and the old one stays."""
        if row < len(self._rules()):
            self._session.plan.change_rule(row, match=match)

    def _choose(self, place: QModelIndex, precision: Precision | None) -> None:
        self._session.plan.change_rule(place.row(), precision=precision)

    def menu(self) -> QMenu:
        """The scheme of the current rule: a submenu per quantity, with the present value ticked. It deletes itself."""
        menu = short_lived_menu(self)
        at, rules = self._current(), self._rules()
        if 0 <= at < len(rules):
            for key, (title, values) in _GRIDS.items():
                submenu = menu.addMenu(title)
                for words, value in values:
                    action = submenu.addAction(words)
                    action.setCheckable(True)
                    action.setChecked(getattr(rules[at], key) == value)
                    action.triggered.connect(
                        lambda _=False, key=key, to=value: self._session.plan.set_rule_grid(at, **{key: to})
                    )
        return menu

    def _move(self, step: int) -> None:
        at, count = self._current(), len(self._rules())
        if 0 <= at + step < count and at >= 0:
            self.table.setCurrentIndex(self._model.index(at + step, _MATCH))
            self._session.plan.move_rule(at, at + step)

    def _remove(self) -> None:
        self._session.plan.remove_rule_at(self._current())

    def _add(self) -> None:
        match = self.match.text().strip()
        if match:
            before = self._rules()
            self._session.plan.set_rule(match, Precision(self.precision.currentData()))
            if self._rules() is not before:
                self.match.clear()

    def _preview(self) -> None:
        """Count the ops that the typed pattern would match."""
        words = self.match.text().strip()
        show_words(self.preview, _preview_words(words, self._session.document.graph) if words else "")

    def _current(self) -> int:
        """The current row; -1 if there is none."""
        return self.table.currentIndex().row()

    def _rules(self) -> tuple[PlanRule, ...]:
        return self._session.document.recipe.plan.rules


def _grid_words(rule: PlanRule) -> str:
    """The scheme that a rule sets besides the precision; the plan sets the rest."""
    group = "" if rule.group_size is None else tr("groups of {value}", value=rule.group_size or "a whole channel")
    return ", ".join(str(part) for part in (rule.weights, rule.activations, group) if part)


def _count_words(matched: int, decided: int) -> str:
    if not matched:
        return tr("No op of this graph matches; check the spelling")
    return tr("Matches {matched} ops and decides {decided}", matched=matched, decided=decided) + (
        tr("; later rules win the others") if decided < matched else ""
    )


def _preview_words(match: str, graph: GraphTable | None) -> str:
    problem = rule_problem(match)
    if problem:
        return problem
    if graph is None:
        return tr("Trace the model to see what it matches")
    rows = plan_index(graph).rows_of(match)
    named = ", ".join(graph.op_id[at] for at in rows[:3])
    more = " …" if len(rows) > 3 else ""
    return f"{plural(len(rows), 'op')}: {named}{more}" if rows else tr("No op of this graph matches")
