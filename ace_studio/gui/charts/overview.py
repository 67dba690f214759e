"""Latency with its spread, accuracy against latency, and size: three plots side by side."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyqtgraph as pg

from ace_studio.gui.charts.chart import Chart, ChartView, under_mouse
from ace_studio.gui.charts.points import Point, colour_of, points_of
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.layouts import column, split
from ace_studio.gui.words.formatting import SIZES, Unit, decibel_text, metric_text, percent_text, plural
from ace_studio.session.document import Document
from ace_studio.session.session import Session

_BAR = 0.56


class Overview(ChartView):
    """A click on a bar or a point selects its run."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.points: list[Point] = []
        self.latency: Chart
        self.trade_off: Chart
        self.sizes: Chart

    def make_parts(self) -> Iterator[None]:
        """Make a plot at a time."""
        self.latency = Chart(tr("Latency"))
        yield
        self.trade_off = Chart(tr("Accuracy"))
        yield
        self.sizes = Chart(tr("Size"))
        yield
        for chart in (self.latency, self.trade_off, self.sizes):
            chart.widget.scene().sigMouseClicked.connect(partial(self._clicked, chart))
        parts = split(self.latency, self.trade_off, self.sizes, sizes=(360, 300, 300), can_close=True)
        self.setLayout(column(parts))

    def missing(self, document: Document) -> str:
        """Needs any measured latency or size."""
        is_there = any(one.latency or one.size_bytes for one in points_of(document))
        return "" if is_there else tr("They appear as soon as a target has been measured.")

    def update_from(self, document: Document) -> None:
        """Draw what was measured."""
        self.points = points_of(document)
        self._unit = Unit.of(one.latency.p50 if one.latency else None for one in self.points)
        self._draw_latency(document)
        self._draw_trade_off(document)
        self._draw_sizes(document)

    def _draw_latency(self, document: Document) -> None:
        points = [one for one in self.points if one.latency is not None]
        unit = self._unit
        plot = self.latency.start(tr("Latency in {unit}: median, p10 – p90", unit=unit.name), self.colours)
        tops = []
        for at, one in enumerate(points):
            latency = one.latency
            if latency is None:
                continue
            y = len(points) - 1 - at
            low, middle, high = (time * unit.factor for time in (latency.p10, latency.p50, latency.p90))
            text, spread = unit.number(middle), f"{unit.number(low)} – {unit.number(high)} {unit.name}"
            rounds = plural(latency.n, "round")
            tip = f"{one.name}: {text} {unit.name}, p10 – p90 {spread}, {rounds}"
            self._bar(plot, y, middle, colour_of(one.run, document, self.colours), tip)
            plot.addItem(_whisker(y, low, middle, high, self.colours.text))
            tops.append((max(middle, high), text))
        self._finish_rows(self.latency, points, tops)

    def _draw_sizes(self, document: Document) -> None:
        points = [one for one in self.points if one.size_bytes]
        unit = Unit.of((one.size_bytes for one in points), SIZES)
        plot = self.sizes.start(tr("Size in {unit}", unit=unit.name), self.colours)
        tops = []
        for at, one in enumerate(points):
            y = len(points) - 1 - at
            tops.append(((one.size_bytes or 0) * unit.factor, unit.text(one.size_bytes)))
            colour = colour_of(one.run, document, self.colours)
            self._bar(plot, y, tops[-1][0], colour, f"{one.name}: {tops[-1][1]} {unit.name}")
        self._finish_rows(self.sizes, points, tops)

    def _draw_trade_off(self, document: Document) -> None:
        has_metric = any(one.metric is not None for one in self.points)
        unit = self._unit
        measure = tr("Metric") if has_metric else tr("SQNR in dB")
        words = tr("{measure} against latency in {unit}", measure=measure, unit=unit.name)
        plot = self.trade_off.start(words, self.colours)
        names = []
        for one in self.points:
            value = one.metric if has_metric else one.sqnr_db
            if one.latency is None or value is None:
                continue
            time = one.latency.p50 * unit.factor
            spot = pg.ScatterPlotItem(
                [time],
                [value],
                size=12,
                symbol="d" if one.run is None else "o",
                brush=pg.mkBrush(colour_of(one.run, document, self.colours)),
                pen=pg.mkPen(self.colours.text),
                data=[one.run],
            )
            text = metric_text(value) if has_metric else decibel_text(value)
            spot.setToolTip(f"{one.name}: {unit.number(time)} {unit.name}, {text}{_drop(document, one)}")
            plot.addItem(spot)
            name = self.trade_off.write(one.short_name, time, value, colour=self.colours.text)
            names.append((name, time, value))
        self.trade_off.keep_names(names)

    def _bar(self, plot: pg.PlotItem, y: float, width: float, colour: str, tip: str) -> None:
        bar = pg.BarGraphItem(
            x0=[0], y=[y], height=_BAR, width=[width], brush=pg.mkBrush(colour), pen=pg.mkPen(self.colours.border)
        )
        bar.setToolTip(tip)
        plot.addItem(bar)

    def _finish_rows(self, chart: Chart, points: Sequence[Point], tops: Sequence[tuple[float, str]]) -> None:
        """Names at the left, and room for the values at the right."""
        chart.name_rows([one.short_name for one in points])
        longest = max((text for _, text in tops), key=len, default="")
        chart.keep_room(max((top for top, _ in tops), default=1.0), longest)
        for at, (top, text) in enumerate(tops):
            chart.write(text, top, len(points) - 1 - at, colour=self.colours.text, anchor=(-0.06, 0.5))
        pairs = zip(points, tops, strict=True)
        chart.describe("; ".join(f"{one.short_name} {text}" for one, (_, text) in pairs))

    def _clicked(self, chart: Chart, event: object) -> None:
        if chart is self.trade_off:
            found = under_mouse(chart.plot, event)
            run = found if isinstance(found, int) else None
        else:
            points = [one for one in self.points if (one.latency if chart is self.latency else one.size_bytes)]
            place = chart.plot.vb.mapSceneToView(event.scenePos())  # type: ignore[attr-defined]
            at = len(points) - 1 - round(place.y())
            run = points[at].run if 0 <= at < len(points) else None
        if run is not None:
            self.session.view.select_run(run)


def _drop(document: Document, one: Point) -> str:
    drop = document.runs[one.run].metric_drop if one.run is not None else None
    return tr(", drop {drop}", drop=percent_text(drop)) if drop is not None else ""


def _whisker(y: float, low: float, middle: float, high: float, colour: str) -> pg.ErrorBarItem:
    return pg.ErrorBarItem(
        x=np.array([middle]),
        y=np.array([y]),
        left=np.array([middle - low]),
        right=np.array([high - middle]),
        beam=_BAR / 2,
        pen=pg.mkPen(colour, width=1.5),
    )
