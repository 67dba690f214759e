"""The ops panel: a table of every op, which filters and sorts at once."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QCheckBox, QMenu

from ace_studio.gui.graph_view.search import SearchField, search_index
from ace_studio.gui.ops.colourings import change_colours
from ace_studio.gui.ops.facts import OpFacts, op_facts, row_of_ops, values_of_ops
from ace_studio.gui.ops.precision_offers import add_precision_menus
from ace_studio.gui.style import Colours, Theme, number, tr
from ace_studio.gui.widgets.differences import DIFFERS, difference_column, differs_words
from ace_studio.gui.widgets.layouts import box, column, row
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.row_selection import RowsTable
from ace_studio.gui.widgets.small import GAP, label, offer_menu, short_lived_menu
from ace_studio.gui.widgets.table_look import count_words, make_plain, show_columns
from ace_studio.gui.widgets.table_model import ByKey, Column, ColumnsModel, Computed, Mask, Texts
from ace_studio.gui.words.formatting import (
    NOTHING,
    Unit,
    bytes_text,
    count_text,
    decibel_text,
    percent_text,
    plural,
    shape_text,
)
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import OpReport
from ace_studio.session.comparison.graphs import MergedGraph, OpChange
from ace_studio.session.comparison.sides import NAMES, ComparedOps, PinnedPair
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
    unit = Unit.of(report.latency_ms for report in reports.values())
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
        Column(title=tr("latency, {unit}", unit=unit.name), values=of_report(lambda report: report.latency_ms),
               text=unit.text,
               is_number=True, width=92, tip="Of this op in the selected run"),
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
        super().__init__(session, theme)
        self._graph: GraphTable | None = None
        self._selected: object = None
        self.model = ColumnsModel(self)
        self.model.find = self._find
        self._problem = ""
        """What is wrong with the filter."""
        self.filter = SearchField(tr("Filter the ops"), tr("Filter: conv layer1 int8 …"))
        self.filter.settled.connect(self._apply_filter)
        self._count = label("", "dim", wrap=False)
        self.table = RowsTable(self.model)
        self.table.setAccessibleName(tr("Ops"))
        make_plain(self.table)
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 8)
        self.table.chosen.chosen_by_hand.connect(self._tell_selection)
        offer_menu(self.table, lambda _: self.menu())
        self.only_different = QCheckBox(tr("Only differences"))
        self.only_different.toggled.connect(lambda _: self._apply_filter())
        tools = row(self.filter, self.only_different, self._count, margin=GAP, stretch=0)
        self.show_pages("table", box(column(tools, self.table, gap=0)))
        self._empty.say(tr("No ops yet"), tr("Trace the model to see them."))
        self.setFocusProxy(self.filter)

    def update_from(self, document: Document) -> None:
        """Show ops and selection."""
        self._pages.setCurrentIndex(1 if document.graph else 0)
        if self._graph is not document.graph:
            self._graph, self._selected = document.graph, None
        if document.graph is None:
            return
        facts = op_facts(document)
        if self.has_changed(document.graph, facts):
            breaks = () if document.capture is None else document.capture.graph_breaks
            self._index = search_index(document.graph, breaks)
            self._values = partial(values_of_ops, document.graph, facts)
            self.model.unseen = tuple(self._index.columns.values())
            if document.comparison is not None and facts.compared is not None:
                columns = difference_columns(document.comparison, facts.compared, self.colours)
            else:
                columns = op_columns(document.graph, facts, self.colours)
            self.only_different.setVisible(facts.compared is not None)
            if show_columns(self.table, self.model, columns):
                self._apply_filter()
        self._show_count()
        self._show_selection(document)

    def _apply_filter(self) -> None:
        """Prepare a column per turn of the event loop: all of them would stop the window at very many ops."""
        is_only = self.only_different.isChecked() and self.session.document.comparison is not None
        wanted = f"{DIFFERS if is_only else ''} {self.filter.text()}"
        if wanted.strip() and self.model.prepare_filter():
            QTimer.singleShot(0, self, self._apply_filter)
            return
        self.model.set_filter(wanted)
        self._show_count()

    def _find(self, query: str, texts: Sequence[Texts]) -> Mask:
        found, self._problem = self._index.find(query, self._values, texts)
        return found

    def _show_count(self) -> None:
        problem = self._problem if self.filter.text().strip() else ""
        self._count.setText(problem or count_words(self.model, plural(self.model.total, "row")))

    def _tell_selection(self) -> None:
        graph = self.session.document.graph
        if graph is not None and graph is self._graph:
            self.session.view.select([graph.op_id[row] for row in self.table.chosen.rows])
            self._selected = self.session.document.selection.op_ids

    def menu(self) -> QMenu:
        """The context menu for the selected ops. It deletes itself when closed."""
        menu = short_lived_menu(self)
        add_precision_menus(menu, self.session, self.session.document.selection.op_ids)
        return menu

    def _show_selection(self, document: Document) -> None:
        wanted = document.selection.op_ids
        if document.graph is not None and wanted is not self._selected:
            self._selected = wanted
            places = row_of_ops(document.graph)
            self.table.show_rows([places[op_id] for op_id in wanted if op_id in places])


def _op_in_first(merged: MergedGraph) -> list[Column]:
    """A column with the operator and the id in A where B computes the same by another one; none if it never does."""
    graph, rows = merged.graphs[0], zip(merged.rows, merged.table.op, strict=True)
    others = [f"{graph.op[at]}  {graph.op_id[at]}" if at >= 0 and graph.op[at] != op else "" for (at, _), op in rows]
    tip = "Where A computes the same by another operator: that one and its name"
    return [Column(title="op in A", values=others, width=200, tip=tip)] if any(others) else []


def difference_columns(comparison: PinnedPair, ops: ComparedOps, colours: Colours) -> list[Column]:
    """One row per row of the merged graph; without a graph there is none."""
    merged = comparison.merged
    if merged is None:
        return []
    table, count = merged.table, len(merged.table)

    def shapes(side: int) -> Computed:
        def shape(row: int) -> str:
            at, graph = merged.rows[row][side], merged.graphs[side]
            return "" if at < 0 else f"{shape_text(graph.shape[at])}  {graph.dtype[at]}".strip()

        return Computed(count, shape)

    def read(side: int, field: str) -> Computed:
        def value(row: int) -> float | None:
            found: OpReport | None = ops.reports[side].get(table.op_id[row])
            return None if found is None else getattr(found, field)

        return Computed(count, value)

    def swatches(values: ByKey) -> Callable[[int], str]:
        return lambda row: colours.precision.get(values[row], "")

    def words(row: int) -> str:
        change = ops.changes[row]
        return "" if change is OpChange.SAME else differs_words(tr(change))

    marks = change_colours(colours) | {OpChange.SAME: ""}
    found = [
        Column(title="#", values=range(count), is_number=True, width=48, tip="Order of execution"),
        difference_column(Computed(count, words), colours, tip=tr("What became of the op from A to B"),
                          swatch=lambda row: marks[ops.changes[row]]),
        Column(title="op id", values=table.op_id, width=120, tip="Name of the op; of one that both have, in B"),
        Column(title="op", values=table.op, width=130),
        Column(title="module", values=table.module, width=120),
    ]  # fmt: skip
    found += _op_in_first(merged)
    for side, name in enumerate(NAMES):
        values = ByKey(table.op_id, ops.precisions[side])
        found.append(Column(title=tr("{name}: precision", name=name), values=values, width=112, swatch=swatches(values),
                            tip="As the runtime reports it; as planned where a side was not run"))  # fmt: skip
    for side, name in enumerate(NAMES):
        found.append(Column(title=tr("{name}: result", name=name), values=shapes(side), width=150))
    times, errors = [read(side, "latency_ms") for side in (0, 1)], [read(side, "error_db") for side in (0, 1)]
    unit = Unit.of(time for side in times for time in side)
    noise = tr("Grey: within the noise of the runs, {noise}", noise=percent_text(ops.noise))
    found += _pair(tr("latency, {unit}", unit=unit.name), times, unit.text, colours, tip=noise, least=ops.noise)
    found += _pair(tr("error, dB"), errors, lambda value: NOTHING if value is None else number(value, ".1f"), colours,
                   tip=tr("Fidelity of its value, with all earlier errors"))  # fmt: skip
    return found


def _pair(
    title: str,
    values: list[Computed],
    text: Callable[[float | None], str],
    colours: Colours,
    *,
    tip: str,
    least: float = 0.0,
) -> list[Column]:
    """A, B and B minus A; grey if that is less than the fraction ``least`` of A."""
    first, second = values

    def difference(row: int) -> float | None:
        one, other = first[row], second[row]
        return None if one is None or other is None else other - one

    def signed(value: Any) -> str:
        return text(value) if value is None or value < 0 else f"+{text(value)}"

    def colour(row: int) -> str:
        found = difference(row)
        return colours.text_dim if found is not None and abs(found) <= least * (first[row] or 0.0) else ""

    return [
        Column(title=f"A: {title}", values=first, text=text, is_number=True, width=104),
        Column(title="B", values=second, text=text, is_number=True, width=70),
        Column(title="B - A", values=Computed(len(first), difference), text=signed, is_number=True, width=80,
               colour=colour, tip=tip),
    ]  # fmt: skip
