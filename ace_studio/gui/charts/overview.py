"""Latency with its spread, accuracy against latency, and size: three plots side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QSplitter

from ace_studio.gui.charts.chart import Chart, ChartView, under_mouse
from ace_studio.gui.charts.points import Point, colour_of, points_of
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.widgets.small import column
from ace_studio.gui.words.formatting import bytes_text, decibel_text, metric_text, ms_text, percent_text, spread_text
from ace_studio.records.results import Latency
from ace_studio.session.document import Document
from ace_studio.session.session import Session

_BAR = 0.56


class Overview(ChartView):
    """A click on a bar or a point selects its run."""

    def __init__(self, session: Session, colours: Colours) -> None:
        """Build the empty plots."""
        super().__init__(session, colours)
        self.points: list[Point] = []
        self.latency, self.trade_off, self.sizes = Chart("Latency"), Chart("Accuracy"), Chart("Size")
        split = QSplitter()
        split.setHandleWidth(1)
        for chart in (self.latency, self.trade_off, self.sizes):
            chart.widget.scene().sigMouseClicked.connect(partial(self._clicked, chart))
            split.addWidget(chart)
        split.setSizes([360, 300, 300])
        self.setLayout(column(split))

    def missing(self, document: Document) -> str:
        """Needs any measured latency or size."""
        is_there = any(one.latency or one.size_bytes for one in points_of(document))
        return "" if is_there else "They appear as soon as a target has been measured."

    def update_from(self, document: Document) -> None:
        """Draw what was measured."""
        self.points = points_of(document)
        self._draw_latency(document)
        self._draw_trade_off(document)
        self._draw_sizes(document)

    def _draw_latency(self, document: Document) -> None:
        points = [one for one in self.points if one.latency is not None]
        plot = self.latency.start("Latency in ms: median, p10 – p90", self.colours)
        tops = []
        for at, one in enumerate(points):
            latency = one.latency
            if latency is None:
                continue
            y = len(points) - 1 - at
            tip = f"{one.name}: {ms_text(latency.p50)}, p10 – p90 {spread_text(latency)}, {latency.n} rounds"
            self._bar(plot, y, latency.p50, colour_of(one.run, document, self.colours), tip)
            plot.addItem(_whisker(y, latency, self.colours.text))
            tops.append((max(latency.p50, latency.p90), ms_text(latency.p50)))
            self._value(plot, y, *tops[-1])
        self._finish_rows(self.latency, points, tops)

    def _draw_sizes(self, document: Document) -> None:
        points = [one for one in self.points if one.size_bytes]
        plot = self.sizes.start("Size in MB", self.colours)
        tops = []
        for at, one in enumerate(points):
            y = len(points) - 1 - at
            tops.append(((one.size_bytes or 0) / 1e6, bytes_text(one.size_bytes)))
            colour = colour_of(one.run, document, self.colours)
            self._bar(plot, y, tops[-1][0], colour, f"{one.name}: {tops[-1][1]}")
            self._value(plot, y, *tops[-1])
        self._finish_rows(self.sizes, points, tops)

    def _draw_trade_off(self, document: Document) -> None:
        has_metric = any(one.metric is not None for one in self.points)
        words = "Metric against latency in ms" if has_metric else "SQNR in dB against latency in ms"
        plot = self.trade_off.start(words, self.colours)
        names = []
        for one in self.points:
            value = one.metric if has_metric else one.sqnr_db
            if one.latency is None or value is None:
                continue
            spot = pg.ScatterPlotItem(
                [one.latency.p50],
                [value],
                size=12,
                symbol="d" if one.run is None else "o",
                brush=pg.mkBrush(colour_of(one.run, document, self.colours)),
                pen=pg.mkPen(self.colours.text),
                data=[one.run],
            )
            text = metric_text(value) if has_metric else decibel_text(value)
            spot.setToolTip(f"{one.name}: {ms_text(one.latency.p50)}, {text}{_drop(document, one)}")
            plot.addItem(spot)
            name = pg.TextItem(one.short_name, color=self.colours.text)
            name.setPos(one.latency.p50, value)
            plot.addItem(name)
            names.append((name, one.latency.p50, value))
        self.trade_off.keep_names(names)

    def _bar(self, plot: pg.PlotItem, y: float, width: float, colour: str, tip: str) -> None:
        bar = pg.BarGraphItem(
            x0=[0], y=[y], height=_BAR, width=[width], brush=pg.mkBrush(colour), pen=pg.mkPen(self.colours.border)
        )
        bar.setToolTip(tip)
        plot.addItem(bar)

    def _value(self, plot: pg.PlotItem, y: float, x: float, text: str) -> None:
        words = pg.TextItem(text, color=self.colours.text, anchor=(-0.06, 0.5))
        words.setPos(x, y)
        plot.addItem(words)

    def _finish_rows(self, chart: Chart, points: Sequence[Point], tops: Sequence[tuple[float, str]]) -> None:
        """Names at the left, and room for the values at the right."""
        chart.name_rows([one.short_name for one in points])
        longest = max((text for _, text in tops), key=len, default="")
        chart.keep_room(max((top for top, _ in tops), default=1.0), longest)
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
    return f", drop {percent_text(drop)}" if drop is not None else ""


def _whisker(y: float, latency: Latency, colour: str) -> pg.ErrorBarItem:
    return pg.ErrorBarItem(
        x=np.array([latency.p50]),
        y=np.array([y]),
        left=np.array([latency.p50 - latency.p10]),
        right=np.array([latency.p90 - latency.p50]),
        beam=_BAR / 2,
        pen=pg.mkPen(colour, width=1.5),
    )
