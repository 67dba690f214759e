"""The ops by sensitivity, the most sensitive first, and the scan that measures it."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyqtgraph as pg

from ace_studio.gui.charts.chart import PlotView
from ace_studio.gui.ops.facts import op_facts
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.fields import ComboBox, WholeBox
from ace_studio.gui.widgets.layouts import CLOSE, GAP, box, row
from ace_studio.gui.widgets.small import ElidedLabel, ProgressBar, allow, button, fill_combo, label
from ace_studio.gui.words.formatting import decibel_text, plural
from ace_studio.gui.words.steps import why_fixed, why_not
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import OpSensitivity
from ace_studio.session.document import Document, JobKind
from ace_studio.session.sensitivity import known_sensitivity, sensitivity_by_op
from ace_studio.session.session import Session

BARS_SHOWN = 400
"""More bars would be thinner than a pixel, and the least sensitive ops decide nothing."""


class SensitivityChart(PlotView):
    """One bar per op. A click selects the op; one button keeps the most sensitive ops at fp32, with one rule each."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.ranked: list[tuple[str, float]] = []
        self.precision = ComboBox(tr("Precision that the ops are compressed to"), chosen=self.draw_again)
        self.precision.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToContents)
        self.scan_button = button(
            tr("Scan sensitivity"), session.jobs.scan_sensitivity, tip=tr("About ten passes over the samples")
        )
        self.progress = ProgressBar(tr("Progress of the scan"))
        self.progress.setFixedWidth(120)
        self.count = WholeBox(1, 9999, accessibleName=tr("How many of the most sensitive ops"))
        self.count.setValue(3)
        self.keep_button = button(tr("Keep at fp32"), self._keep)
        self._note = ElidedLabel(role="dim")
        self._keeper = box(row(label(tr("The first"), "dim", wrap=False), self.count, self.keep_button, gap=CLOSE))
        parts = (self.precision, self.scan_button, self.progress, self._note, self._keeper)
        self.show_plot(tr("Sensitivity"), row(*parts, stretch=3, margin=(GAP, CLOSE, GAP, 0)))

    def update_from(self, document: Document) -> None:
        """Draw the bars."""
        found = known_sensitivity(document)
        self._show_tools(document, found)
        precision = str(self.precision.currentData() or "")
        self.ranked = sorted(sensitivity_by_op(found, precision).items(), key=lambda pair: pair[1])
        self._keeper.setVisible(bool(self.ranked))
        self.count.setMaximum(max(1, len(self.ranked)))
        plot = self.chart.start(
            tr("SQNR of the outputs if only this op is compressed, dB: the lower, the more sensitive"),
            self.colours,
            y_grid=True,
        )
        plot.showAxes((bool(self.ranked), False, False, bool(self.ranked)))
        if not self.ranked:
            self.chart.describe(tr("not scanned yet"))
            return
        self._draw_bars(plot, document)
        worst = ", ".join(f"{op_id} {decibel_text(value)}" for op_id, value in self.ranked[:5])
        self.chart.describe(tr("{ops}, the most sensitive: {worst}", ops=plural(len(self.ranked), "op"), worst=worst))

    def figures(self) -> Iterator[Sequence[object]]:
        """A row per op, also of those that have no bar."""
        yield "op", "precision", "SQNR, dB"
        yield from ((op_id, self.precision.currentData(), value) for op_id, value in self.ranked)

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
        plot.getAxis("bottom").setTicks([[]])
        if per_bar < self.fontMetrics().height():
            plot.setLabel(
                "bottom",
                tr("the {count} most sensitive of {total} ops", count=len(shown), total=len(self.ranked)),
                color=self.colours.text_dim,
            )
            plot.showLabel("bottom", show=True)
            return
        plot.setLabel("bottom", None)
        plot.showLabel("bottom", show=False)
        for at, (op_id, _) in enumerate(shown):
            self.chart.write(op_id, at, floor, colour=self.colours.text, anchor=(0, 0.5), angle=90)

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
        self.scan_button.setVisible(not is_scanning)
        why = why_not(document)
        allow(self.scan_button, why, tr("About ten passes over the samples; Esc keeps what was found"))
        allow(self.keep_button, why_fixed(document), tr("A rule for each of the most sensitive ops"))
        self.progress.show_fraction(activity.fraction)
        self._note.setText(_note(document, found))

    def _keep(self) -> None:
        kept = [op_id for op_id, _ in self.ranked[: self.count.value()]]
        self.session.plan.set_precision_of_ops(kept, Precision.FP32)

    def clicked(self, event: object) -> None:
        """Select the op of the bar."""
        place = self.chart.plot.vb.mapSceneToView(event.scenePos())  # type: ignore[attr-defined]
        at = round(place.x())
        if 0 <= at < min(BARS_SHOWN, len(self.ranked)):
            self.session.view.select([self.ranked[at][0]])


def _note(document: Document, found: tuple[OpSensitivity, ...]) -> str:
    scan = document.sensitivity
    if scan is not None and found is scan.ops:
        done = tr("{done} of {samples}", done=scan.samples_done, samples=plural(scan.samples, "sample"))
        notes = "; ".join(scan.notes)
        words = tr("{done}, cost {forwards:.0f} forward passes", done=done, forwards=scan.forwards)
        return "  ·  ".join(part for part in ("" if scan.is_complete else tr("not complete"), words, notes) if part)
    if found:
        return tr("From the last run")
    return tr("Nothing was scanned yet. A run with a goal scans by itself")
