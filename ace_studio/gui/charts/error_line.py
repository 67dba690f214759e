"""The error along the graph: the fidelity of every op's value, in order of execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyqtgraph as pg

from ace_studio.gui.charts.chart import Chart, ChartView, add_spots, under_mouse
from ace_studio.gui.charts.points import colour_of, run_names
from ace_studio.gui.ops.facts import row_of_ops, selected_run
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.widgets.small import column
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


class ErrorLine(ChartView):
    """One line per run; the selected run shows its points. A click selects the op."""

    def __init__(self, session: Session, colours: Colours) -> None:
        """Build the empty plot."""
        super().__init__(session, colours)
        self.chart = Chart("Error along the graph")
        self.chart.widget.scene().sigMouseClicked.connect(self._clicked)
        self.shown: list[tuple[int, float, OpReport]] = []
        self.setLayout(column(self.chart))

    def missing(self, document: Document) -> str:
        """Needs a run that compared its ops with those of the float model."""
        is_there = document.graph is not None and any(
            op.error_db is not None for run in document.runs for op in run.ops
        )
        return (
            "" if is_there else "The error of every op appears here after a run that compares them with the original."
        )

    def update_from(self, document: Document) -> None:
        """Draw the lines."""
        if document.graph is None:
            return
        rows = row_of_ops(document.graph)
        plot = self.chart.start(
            "Fidelity of each op's value to the original's, dB, along the graph: lower is worse",
            self.colours,
            y_grid=True,
        )
        chosen = selected_run(document)
        names = run_names(document)
        self.shown = []
        everything: list[float] = []
        for at, run in enumerate(document.runs):
            found = errors_of(run, rows)
            if not found:
                continue
            everything += [value for _, value, _ in found]
            if run is chosen:
                self.shown = found
            else:
                self._line(plot, found, self.colours.faded, width=1.0, tip=names[at])
        if not self.shown:
            # The selected run has no errors: take the first run that does.
            at, run = next((at, run) for at, run in enumerate(document.runs) if errors_of(run, rows))
            chosen, self.shown = run, errors_of(run, rows)
        at = next(at for at, run in enumerate(document.runs) if run is chosen)
        self._line(plot, self.shown, colour_of(at, document, self.colours), width=2.0, tip=names[at])
        self._points(plot, document)
        plot.setXRange(-1, len(document.graph), padding=0)
        low, high = min(everything), max(everything)
        plot.setYRange(low - 0.1 * (high - low + 1), high + 0.12 * (high - low + 1), padding=0)
        known = [
            (names[at], {row: value for row, value, _ in errors_of(run, rows)}) for at, run in enumerate(document.runs)
        ]
        self.chart.reads = lambda x, _: _read(document.graph, known, round(x))
        worst = min(self.shown, key=lambda one: one[1])
        self.chart.describe(f"{names[at]}: lowest at {worst[2].id} with {decibel_text(worst[1])}")

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

    def _clicked(self, event: object) -> None:
        found = under_mouse(self.chart.plot, event)
        if isinstance(found, str):
            self.session.view.select([found])
