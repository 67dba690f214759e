"""The error along the graph: the fidelity of every op's value, in order of execution."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyqtgraph as pg

from ace_studio.gui.charts.chart import PlotView, add_spots
from ace_studio.gui.charts.points import colour_of, run_names
from ace_studio.gui.ops.facts import row_of_ops, selected_run
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.words.formatting import decibel_text
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import OpReport, TargetRun
from ace_studio.session.document import Document
from ace_studio.session.session import Session

HIGHEST_DB = 100.0
"""Values above this are cut: they agree to the last digits of fp32, and would flatten the rest of the curve."""


def errors_of(run: TargetRun, rows: Mapping[str, int]) -> list[tuple[int, float, OpReport]]:
    """Row, dB and report of every op whose error is known, in the order of execution."""
    found = [
        (rows[op.id], min(op.error_db, HIGHEST_DB), op) for op in run.ops if op.error_db is not None and op.id in rows
    ]
    return sorted(found, key=lambda one: one[0])


def _read(graph: GraphTable | None, known: Sequence[tuple[str, Mapping[int, float]]], row: int) -> str:
    """The op at a place and the error that each run has there."""
    found = [f"{name}: {decibel_text(values[row])}" for name, values in known if row in values]
    return "\n".join([graph.op_id[row], *found]) if graph is not None and found else ""


class ErrorLine(PlotView):
    """One line per run; the selected run shows its points. A click selects the op."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.shown: list[tuple[int, float, OpReport]] = []
        self.show_plot(tr("Error along the graph"))

    def missing(self, document: Document) -> str:
        """Needs a run that compared its ops with those of the float model."""
        if document.graph and any(op.error_db is not None for run in document.runs for op in run.ops):
            return ""
        return tr("The error of every op appears here after a run that compares them with the original.")

    def update_from(self, document: Document) -> None:
        """Draw the lines."""
        if document.graph is None:
            return
        rows = row_of_ops(document.graph)
        names = run_names(document)
        errors = {at: found for at, run in enumerate(document.runs) if (found := errors_of(run, rows))}
        # If the selected run has no errors: the first run that does.
        chosen = next((at for at in errors if document.runs[at] is selected_run(document)), next(iter(errors)))
        self.shown = errors[chosen]
        title = tr("Fidelity of each op's value to the original's, dB, along the graph: lower is worse")
        if len(errors) > 1:
            title = tr("{name}, the other runs in grey: {title}", name=names[chosen], title=title)
        plot = self.chart.start(title, self.colours, y_grid=True)
        for at, found in errors.items():
            if at != chosen:
                self._line(plot, found, self.colours.faded, width=1.0, tip=names[at])
        self._line(plot, self.shown, colour_of(chosen, document, self.colours), width=2.0, tip=names[chosen])
        self._points(plot, document)
        plot.setXRange(-1, len(document.graph), padding=0)
        everything = [value for found in errors.values() for _, value, _ in found]
        low, high = min(everything), max(everything)
        plot.setYRange(low - 0.1 * (high - low + 1), high + 0.12 * (high - low + 1), padding=0)
        known = [(names[at], {row: value for row, value, _ in found}) for at, found in errors.items()]
        self.chart.reads = lambda x, _: _read(document.graph, known, round(x))
        worst = min(self.shown, key=lambda one: one[1])
        self.chart.describe(
            tr("{names}: lowest at {id} with {db}", names=names[chosen], id=worst[2].id, db=decibel_text(worst[1]))
        )

    def _line(
        self, plot: pg.PlotItem, found: list[tuple[int, float, OpReport]], colour: str, *, width: float, tip: str
    ) -> None:
        xs, ys = np.array([row for row, _, _ in found]), np.array([value for _, value, _ in found])
        line = pg.PlotDataItem(xs, ys, pen=pg.mkPen(colour, width=width))
        line.setToolTip(tip)
        plot.addItem(line)

    def _points(self, plot: pg.PlotItem, document: Document) -> None:
        selected = frozenset(document.selection.op_ids)
        known = {op.id: (value, op) for _, value, op in self.shown}
        add_spots(
            plot,
            [(row, value) for row, value, _ in self.shown],
            op_ids=list(known),
            fills=[self.colours.precision.get(op.actual, self.colours.text_dim) for _, _, op in self.shown],
            sizes=[11 if op.id in selected else 6 for _, _, op in self.shown],
            selected=selected,
            colours=self.colours,
            tip=lambda op_id: f"{op_id} ({known[op_id][1].actual}): {decibel_text(known[op_id][0])}",
        )
