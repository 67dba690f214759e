"""The ops panel: a table of every op, which filters and sorts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QAbstractItemView, QCheckBox, QHeaderView, QMenu, QStackedWidget, QWidget

from ace_studio.gui.ops.difference_columns import DIFFERS, difference_columns
from ace_studio.gui.ops.facts import OpFacts, op_facts, row_of_ops
from ace_studio.gui.ops.precision_menu import add_precision_menus
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.row_selection import RowsTable
from ace_studio.gui.widgets.small import GAP, EmptyState, FilterField, column, label, pop_up, row
from ace_studio.gui.widgets.table_model import ByKey, Column, ColumnsModel, Computed
from ace_studio.gui.words.formatting import NOTHING, bytes_text, count_text, decibel_text, ms_text, plural, shape_text
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import OpReport
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session


def op_columns(table: GraphTable, facts: OpFacts, colours: Colours) -> list[Column]:
    """The columns of the op table, one row per row of the graph."""
    ids, reports = table.op_id, facts.reports

    def of_report(read: Callable[[OpReport], Any], otherwise: Sequence[Any] | None = None) -> Sequence[Any]:
        """What the report says of each op; where it says nothing, what ``otherwise`` holds."""
        spare = [None] * len(ids) if otherwise is None else otherwise

        def of_row(row: int) -> Any:
            found = read(reports[ids[row]]) if ids[row] in reports else None
            return spare[row] if found is None or found == "" else found

        return Computed(len(ids), of_row) if reports else spare

    planned = ByKey(ids, facts.planned)
    actual = of_report(lambda report: report.actual, ByKey(ids, {}))
    reasons = of_report(lambda report: report.reason, ByKey(ids, facts.planned_by))
    devices = of_report(lambda report: report.device, table.device)
    measured = of_report(lambda report: report.sensitivity_db)
    sensitivities = Computed(len(ids), lambda row: facts.sensitivity.get(ids[row], measured[row]))
    support = ByKey(ids, facts.support)
    became = Computed(len(ids), lambda row: facts.fates[ids[row]].words if ids[row] in facts.fates else "")
    names = [path.replace("\\", "/").rpartition("/")[2] for path in table.files]
    places = Computed(
        len(ids), lambda row: f"{names[table.file[row]]}:{table.line[row]}" if 0 <= table.file[row] < len(names) else ""
    )

    def actual_colour(at: int) -> str:
        is_refused = actual[at] and planned[at] and actual[at] not in (planned[at], "fused", "folded", "unknown")
        return colours.warn if is_refused else ""

    return [
        Column(title="#", values=range(len(table)), is_number=True, width=48, tip="Order of execution"),
        Column(title="op id", values=table.op_id, width=150, tip="Name of the op in rules of the plan: id:NAME"),
        Column(title="op", values=table.op, width=180, text=_short),
        Column(title="module", values=table.module, width=150),
        Column(title="shape", values=table.shape, text=_shape, width=130, tip="Shape of the result, with symbols"),
        Column(title="dtype", values=table.dtype, width=72),
        Column(title="planned", values=planned, width=108, swatch=lambda at: colours.precision.get(planned[at], "")),
        Column(title="actual", values=actual, width=108, colour=actual_colour,
               swatch=lambda at: colours.precision.get(actual[at], ""), tips=lambda at: reasons[at],
               tip="Precision at which the selected target ran it, read back from the runtime"),
        Column(title="became", values=became, width=150, tips=lambda at: reasons[at],
               tip="Its fate in the selected run: fused, folded, gone or run by itself"),
        Column(title="device", values=devices, width=76),
        Column(title="latency", values=of_report(lambda report: report.latency_ms), text=ms_text, is_number=True,
               width=84, tip="Of this op in the selected run"),
        Column(title="FLOPs", values=table.flops, text=lambda n: count_text(n) if n else NOTHING, is_number=True,
               width=76),
        Column(title="weights", values=table.weight_bytes, text=lambda n: bytes_text(n) if n else NOTHING,
               is_number=True, width=84),
        Column(title="output", values=table.output_bytes, text=bytes_text, is_number=True, width=84),
        Column(title="sensitivity", values=sensitivities, text=decibel_text, is_number=True, width=84,
               tip="Signal-to-noise ratio at the outputs if only this op is compressed: the lower, the more sensitive"),
        Column(title="error", values=of_report(lambda report: report.error_db), text=decibel_text,
               is_number=True, width=78, tip="Fidelity of its value in the selected run, with all earlier errors"),
        Column(title="source", values=places, width=110),
        Column(title="unsupported in", values=support, width=200, tips=lambda at: support[at],
               tip="Targets without this op, and what they do instead"),
        Column(title="reason", values=reasons, width=320, tips=lambda at: reasons[at]),
    ]  # fmt: skip


def _short(op: str) -> str:
    return op.removeprefix("aten.").removesuffix(".default")


def _shape(shape: str) -> str:
    return shape_text(shape) if shape else ""


class OpsPanel(Panel):
    """The table and its filter."""

    title = "Ops"
    shows = frozenset({Part.GRAPH, Part.RUNS, Part.RECIPE, Part.SELECTION})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start empty."""
        super().__init__(session, theme)
        self._shown: tuple[object, object] = (None, None)
        self._selected: object = None
        self.model = ColumnsModel(self)
        self.filter = FilterField("Filter the ops", "Filter: conv layer1 int8 …")
        self.filter.settled.connect(self._apply_filter)
        self._count = label("", "dim", wrap=False)
        self.table = RowsTable(self.model)
        self.table.setAccessibleName("Ops")
        self.table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.table.setWordWrap(False)
        self.table.setShowGrid(False)
        self.table.setSortingEnabled(True)
        self.table.setTabKeyNavigation(False)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 8)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        header.setSortIndicatorClearable(True)
        header.setHighlightSections(False)
        self.table.chosen.chosen_by_hand.connect(self._tell_selection)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(lambda place: pop_up(self.menu(), self.table, place))
        self.only_different = QCheckBox("Only differences")
        self.only_different.toggled.connect(lambda _: self._apply_filter())
        tools = row(self.filter, self.only_different, self._count)
        tools.setContentsMargins(GAP, GAP, GAP, GAP)
        tools.setStretch(0, 1)
        content = QWidget()
        content.setLayout(column(tools, self.table, gap=0))
        self._empty = EmptyState("table")
        self._empty.say("No ops yet", "Trace the model to see them.")
        self._empty.tint(theme.colours.text_dim)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(content)
        self.setLayout(column(self._pages))
        self.setFocusProxy(self.filter)

    def update_from(self, document: Document) -> None:
        """Show ops and selection."""
        self._pages.setCurrentIndex(1 if document.graph else 0)
        if document.graph is None:
            self._shown = (None, None)
            return
        facts = op_facts(document)
        if self._shown[0] is not document.graph or self._shown[1] is not facts:
            titles = [each.title for each in self.model.columns]
            if self._shown[0] is not document.graph:
                self._selected = None
            self._shown = (document.graph, facts)
            if document.comparison is not None and facts.compared is not None:
                columns = difference_columns(document.comparison, facts.compared, self.colours)
            else:
                columns = op_columns(document.graph, facts, self.colours)
            self.only_different.setVisible(facts.compared is not None)
            self.model.set_columns(columns)
            if titles != [each.title for each in columns]:
                self._apply_filter()
                for at, each in enumerate(columns):
                    self.table.setColumnWidth(at, each.width)
        self._show_count()
        self._show_selection(document)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)
        self._shown = (None, None)
        if self.isVisible():
            self.update_from(self.session.document)

    def _apply_filter(self) -> None:
        """Prepare a column per turn of the event loop: all of them would stop the window at very many ops."""
        is_only = self.only_different.isChecked() and self.session.document.comparison is not None
        wanted = f"{self.filter.text()} {DIFFERS if is_only else ''}"
        if wanted.strip() and self.model.prepare_filter():
            QTimer.singleShot(0, self, self._apply_filter)
            return
        self.model.set_filter(wanted)
        self._show_count()

    def _show_count(self) -> None:
        shown, total = self.model.rowCount(), self.model.total
        self._count.setText(plural(total, "row") if shown == total else f"{shown} of {plural(total, 'row')}")

    def _tell_selection(self) -> None:
        graph = self.session.document.graph
        if graph is not None and graph is self._shown[0]:
            self.session.view.select([graph.op_id[row] for row in self.table.chosen.rows])
            self._selected = self.session.document.selection.op_ids

    def menu(self) -> QMenu:
        """The context menu for the selected ops. It deletes itself when closed."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        add_precision_menus(menu, self.session, self.session.document.selection.op_ids)
        return menu

    def _show_selection(self, document: Document) -> None:
        wanted = document.selection.op_ids
        if document.graph is not None and wanted is not self._selected:
            self._selected = wanted
            places = row_of_ops(document.graph)
            self.table.show_rows([places[op_id] for op_id in wanted if op_id in places])
