"""The roofline: operations per second of every op over its operations per byte, under the limits of this machine."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pyqtgraph as pg

from ace_studio.gui.charts.chart import PlotView, add_spots
from ace_studio.gui.charts.op_time import TimedRow, timed_runs
from ace_studio.gui.style import Colours, number, tr
from ace_studio.gui.words.formatting import bytes_text, count_text, ms_text
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import Ceilings, OpReport
from ace_studio.session.document import Document
from ace_studio.session.session import Session

_INT8 = frozenset({Precision.INT8_STATIC, Precision.INT8_DYNAMIC})
"""They multiply alike, so one ceiling holds for both."""


def placed_ops(one: TimedRow) -> list[tuple[OpReport, float, float]]:
    """Ops with operations per byte and 10^9 operations per second, where all numbers are known."""
    return [
        (op, op.flops / op.bytes, op.flops / op.latency_ms / 1e6)
        for op in one.ops
        if op.flops and op.bytes and op.latency_ms
    ]


def log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks of a logarithmic axis from 10^low to 10^high: decades, with 2 and 5 between if these are few."""
    steps = (1,) if high - low > 3 else (1, 2, 5)
    values = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    return [(math.log10(value), f"{value:g}") for value in values if low <= math.log10(value) <= high]


class Roofline(PlotView):
    """The selected run, or the baseline. A click selects the op."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.placed: list[tuple[OpReport, float, float]] = []
        self._ridges: list[tuple[str, float, float]] = []
        """Precision, operations per byte and 10^9 operations per second where its ceiling begins."""
        self.show_plot(tr("Roofline"))
        self.chart.plot.setLogMode(x=True, y=True)

    def missing(self, document: Document) -> str:
        """Needs times, operations and bytes of the ops of one run."""
        one = _chosen(document)
        words = tr(
            "A roofline needs the time, the operations and the bytes of every op; a run that measures finds them."
        )
        return "" if one is not None and placed_ops(one) else words

    def update_from(self, document: Document) -> None:
        """Draw ops and ceilings."""
        one = _chosen(document)
        if one is None:
            return
        self.placed = placed_ops(one)
        title = tr("{name}: GFLOP/s against FLOP per byte moved, larger points take longer", name=one.name)
        plot = self.chart.start(title, self.colours, y_grid=True)
        plot.setLabel("bottom", tr("FLOP per byte"), color=self.colours.text_dim)
        plot.setLabel("left", "GFLOP/s", color=self.colours.text_dim)
        ceilings = document.result.ceilings if document.result else None
        self._draw_ceilings(plot, ceilings)
        longest = max(op.latency_ms or 0.0 for op, _, _ in self.placed) or 1.0
        reports = {op.id: op for op, _, _ in self.placed}
        add_spots(
            plot,
            [(math.log10(x), math.log10(y)) for _, x, y in self.placed],
            op_ids=list(reports),
            fills=[self.colours.precision.get(op.actual, self.colours.text_dim) for op, _, _ in self.placed],
            sizes=[7 + 14 * math.sqrt((op.latency_ms or 0.0) / longest) for op, _, _ in self.placed],
            selected=frozenset(document.selection.op_ids),
            colours=self.colours,
            tip=lambda op_id: _tip(reports[op_id]),
        )
        self._fit(ceilings)
        self.chart.describe("; ".join(_tip(op) for op, _, _ in self.placed[:40]))

    def figures(self) -> Iterator[Sequence[object]]:
        """A row per op, and one for the ridge of each ceiling."""
        yield "op", "precision", "FLOP per byte", "GFLOP/s"
        yield from ((op.id, op.actual, x, y) for op, x, y in self.placed)
        yield from (("", precision, x, y) for precision, x, y in self._ridges)

    def _draw_ceilings(self, plot: pg.PlotItem, ceilings: Ceilings | None) -> None:
        self._ridges = []
        if ceilings is None or not ceilings.gflops:
            return
        left = min(x for _, x, _ in self.placed) / 4
        right = max(x for _, x, _ in self.placed) * 4
        for precision, gflops in ceilings.gflops.items():
            ridge = gflops / ceilings.gbytes_per_s
            self._ridges.append((precision, ridge, gflops))
            colour = self.colours.precision.get(precision, self.colours.text_dim)
            start = min(left, ridge)
            xs = np.array([start, ridge, max(right, ridge * 2)])
            ys = np.minimum(xs * ceilings.gbytes_per_s, gflops)
            # pyqtgraph takes logarithms of lines, but not of points and texts.
            plot.addItem(pg.PlotDataItem(xs, ys, pen=pg.mkPen(colour, width=2)))
            words, end = f"{precision} {number(gflops, '.3g')} GFLOP/s", math.log10(self._right_end(ceilings)) + 0.28
            if precision == Precision.FP32 and (unknown := self._without_ceiling(ceilings)):
                words = tr("{words}; of {unknown} none was measured, it may be higher", words=words, unknown=unknown)
            colours = self.colours
            self.chart.write(
                words, end, math.log10(gflops), colour=colours.text_dim, anchor=(1, -0.1), fill=colours.surface
            )

    def _without_ceiling(self, ceilings: Ceilings) -> str:
        """Precisions of the ops with an arithmetic of their own, whose rate torch cannot measure on this machine."""
        known = {*ceilings.gflops, *(_INT8 if _INT8 & ceilings.gflops.keys() else ())}
        own = {Precision.FP16, Precision.BF16, Precision.FP8, *_INT8}
        return ", ".join(sorted(({op.actual for op, _, _ in self.placed} & own) - known))

    def _right_end(self, ceilings: Ceilings) -> float:
        """The largest visible number of operations per byte."""
        return max(*(x for _, x, _ in self.placed), 2 * max(ceilings.gflops.values()) / ceilings.gbytes_per_s)

    def _fit(self, ceilings: Ceilings | None) -> None:
        xs, ys = [x for _, x, _ in self.placed], [y for _, _, y in self.placed]
        if ceilings is not None and ceilings.gflops:
            ys += [max(ceilings.gflops.values())]
            xs += [self._right_end(ceilings)]
        for side, values, show in (("bottom", xs, self.chart.plot.setXRange), ("left", ys, self.chart.plot.setYRange)):
            low, high = math.log10(min(values)) - 0.3, math.log10(max(values)) + 0.3
            show(low, high, padding=0)
            self.chart.plot.getAxis(side).setTicks([log_ticks(low, high)])


def _chosen(document: Document) -> TimedRow | None:
    """The selected run if its ops were timed, else the baseline or the first that was."""
    runs = timed_runs(document)
    wanted = document.selection.run
    return next((one for one in runs if one.run == wanted), runs[0] if runs else None)


def _tip(op: OpReport) -> str:
    parts = [f"{op.id} ({op.actual})", ms_text(op.latency_ms), f"{count_text(op.flops)}FLOP", bytes_text(op.bytes)]
    if op.bound is not None:
        parts.append(tr("bound by {bound}", bound=op.bound))
    if op.ceiling_share is not None:
        parts.append(tr("{number:.0f} % of the ceiling", number=100 * op.ceiling_share))
    return ", ".join(parts)
