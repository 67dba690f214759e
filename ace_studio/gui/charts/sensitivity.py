"""The ops by sensitivity, the most sensitive first, and the scan that measures it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QProgressBar, QWidget

from ace_studio.gui.charts.chart import Chart, ChartView
from ace_studio.gui.ops.facts import op_facts
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.widgets.fields import ComboBox, WholeBox
from ace_studio.gui.widgets.small import GAP, ElidedLabel, button, column, fill_combo, label, row
from ace_studio.gui.words.formatting import decibel_text, plural
from ace_studio.gui.words.starting import why_not
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import OpSensitivity
from ace_studio.session.document import Document, JobKind
from ace_studio.session.sensitivity import known_sensitivity, sensitivity_by_op
from ace_studio.session.session import Session

BARS_SHOWN = 400
"""More bars would be thinner than a pixel, and the least sensitive ops decide nothing."""


class SensitivityChart(ChartView):
    """One bar per op. A click selects the op; one button keeps the most sensitive ops at fp32, with one rule each."""

    def __init__(self, session: Session, colours: Colours) -> None:
        """Build the empty plot."""
        super().__init__(session, colours)
        self.ranked: list[tuple[str, float]] = []
        self.precision = ComboBox()
        self.precision.setAccessibleName("Precision that the ops are compressed to")
        self.precision.activated.connect(lambda _: self.update_from(session.document))
        self.scan_button = button(
            "Scan sensitivity", session.jobs.scan_sensitivity, tip="About ten passes over the samples"
        )
        self.cancel_button = button("Cancel (Esc)", session.jobs.cancel)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedWidth(120)
        self.progress.setAccessibleName("Progress of the scan")
        self.count = WholeBox()
        self.count.setRange(1, 9999)
        self.count.setValue(3)
        self.count.setAccessibleName("How many of the most sensitive ops")
        self.keep_button = button("Keep at fp32", self._keep, tip="A rule for each of the most sensitive ops")
        self._note = ElidedLabel()
        self._note.setProperty("role", "dim")
        self._keeper = QWidget()
        self._keeper.setLayout(row(label("The first", "dim", wrap=False), self.count, self.keep_button, gap=6))
        tools = row(self.precision, self.scan_button, self.progress, self.cancel_button, self._note, self._keeper)
        tools.setStretch(4, 1)
        tools.setContentsMargins(GAP, 6, GAP, 0)
        self.chart = Chart("Sensitivity")
        self.chart.widget.scene().sigMouseClicked.connect(self._clicked)
        self.setLayout(column(tools, self.chart, gap=0))
        self.layout().setStretch(1, 1)  # type: ignore[union-attr]

    def missing(self, document: Document) -> str:
        """Needs nothing: without numbers the chart offers a scan."""
        del document
        return ""

    def update_from(self, document: Document) -> None:
        """Draw the bars."""
        found = known_sensitivity(document)
        self._show_tools(document, found)
        precision = str(self.precision.currentData() or "")
        values = sensitivity_by_op(found, precision)
        self.ranked = sorted(values.items(), key=lambda pair: pair[1])
        self._keeper.setVisible(bool(self.ranked))
        self.count.setMaximum(max(1, len(self.ranked)))
        plot = self.chart.start(
            "SQNR of the outputs if only this op is compressed, dB: the lower, the more sensitive",
            self.colours,
            y_grid=True,
        )
        plot.showAxes((bool(self.ranked), False, False, bool(self.ranked)))
        if not self.ranked:
            self.chart.describe("not scanned yet")
            return
        self._draw_bars(plot, document)
        worst = ", ".join(f"{op_id} {decibel_text(value)}" for op_id, value in self.ranked[:5])
        self.chart.describe(f"{plural(len(self.ranked), 'op')}, the most sensitive: {worst}")

    def _draw_bars(self, plot: pg.PlotItem, document: Document) -> None:
        shown = self.ranked[:BARS_SHOWN]
        planned, selected = op_facts(document).planned, set(document.selection.op_ids)
        heights = np.array([value for _, value in shown])
        floor = min(0.0, float(heights.min()))
        colours = [self.colours.precision.get(planned.get(op_id, ""), self.colours.series[0]) for op_id, _ in shown]
        brushes = {colour: pg.mkBrush(colour) for colour in set(colours)}
        pens = (pg.mkPen(self.colours.border), pg.mkPen(self.colours.accent, width=3))
        bars = pg.BarGraphItem(
            x=np.arange(len(shown)),
            y0=floor,
            height=heights - floor,
            width=0.85,
            brushes=[brushes[colour] for colour in colours],
            pens=[pens[op_id in selected] for op_id, _ in shown],
        )
        plot.addItem(bars)
        self._write_names(plot, shown, floor)
        words = [f"{op_id} ({self.precision.currentText()}): {decibel_text(value)}" for op_id, value in shown]
        self.chart.reads = lambda x, _: words[round(x)] if 0 <= round(x) < len(words) else ""
        plot.setXRange(-0.8, max(12, len(shown)) - 0.2, padding=0)
        plot.setYRange(floor, float(heights.max()) * 1.08 + 1, padding=0)

    def _write_names(self, plot: pg.PlotItem, shown: Sequence[tuple[str, float]], floor: float) -> None:
        """Write names along the bars where these are wide enough, else the number of bars."""
        per_bar = max(80.0, self.chart.plot.getViewBox().width()) / max(12, len(shown))
        axis = plot.getAxis("bottom")
        axis.setTicks([[]])
        if per_bar < self.fontMetrics().height():
            of = f" of {len(self.ranked)}" if len(shown) < len(self.ranked) else ""
            plot.setLabel("bottom", f"the {len(shown)} most sensitive{of} ops", color=self.colours.text_dim)
            plot.showLabel("bottom", show=True)
            return
        plot.setLabel("bottom", None)
        plot.showLabel("bottom", show=False)
        for at, (op_id, _) in enumerate(shown):
            text = pg.TextItem(op_id, color=self.colours.text, anchor=(0, 0.5), angle=90)
            text.setPos(at, floor)
            plot.addItem(text)

    def _show_tools(self, document: Document, found: tuple[OpSensitivity, ...]) -> None:
        precisions = list(dict.fromkeys(one.precision for one in found))
        self.precision.setVisible(len(precisions) > 1)
        kept = self.precision.currentData()
        if precisions:
            fill_combo(
                self.precision, [(each, each) for each in precisions], kept if kept in precisions else precisions[0]
            )
        activity = document.activity
        is_scanning = activity.is_working and activity.verb is JobKind.SENSITIVITY
        self.progress.setVisible(is_scanning)
        self.cancel_button.setVisible(is_scanning)
        self.scan_button.setVisible(not is_scanning)
        why = why_not(document)
        self.scan_button.setEnabled(not why)
        self.scan_button.setToolTip(why or "About ten passes over the samples; Esc keeps what was found")
        self.progress.setRange(0, 1000 if activity.fraction is not None else 0)
        if activity.fraction is not None:
            self.progress.setValue(round(1000 * activity.fraction))
        self._note.setText(_note(document, found))

    def _keep(self) -> None:
        kept = [op_id for op_id, _ in self.ranked[: self.count.value()]]
        self.session.plan.set_precision_of_ops(kept, Precision.FP32)

    def _clicked(self, event: object) -> None:
        place = self.chart.plot.vb.mapSceneToView(event.scenePos())  # type: ignore[attr-defined]
        at = round(place.x())
        if 0 <= at < min(BARS_SHOWN, len(self.ranked)):
            self.session.view.select([self.ranked[at][0]])


def _note(document: Document, found: tuple[OpSensitivity, ...]) -> str:
    scan = document.sensitivity
    if scan is not None and found is scan.ops:
        done = f"{scan.samples_done} of {plural(scan.samples, 'sample')}"
        notes = "; ".join(scan.notes)
        words = f"{done}, cost {scan.forwards:.0f} forward passes"
        return "  ·  ".join(part for part in ("" if scan.is_complete else "not complete", words, notes) if part)
    if found:
        return "From the last run"
    return "Nothing was scanned yet. A run with a goal scans by itself"
