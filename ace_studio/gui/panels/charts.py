"""The charts: latency with its spread, accuracy against latency, and size. Loaded when first seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtWidgets import QSplitter, QStackedWidget

from ace_studio.gui.formatting import bytes_text, decibel_text, metric_text, ms_text, percent_text, spread_text
from ace_studio.gui.panel import Panel
from ace_studio.gui.theme import Colours, Theme
from ace_studio.gui.widgets import EmptyState, column
from ace_studio.records.results import Baseline, Latency, RunStatus
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_BAR = 0.56
_WIDEST_NAME_PX = 150


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run, or the baseline, as the charts see it."""

    name: str
    latency: Latency | None
    metric: float | None
    sqnr_db: float | None
    size_bytes: int | None
    run: int | None
    """Index of the run; None for the baseline."""


def points_of(document: Document) -> list[Point]:
    """The baseline and every run that was built."""
    found = [] if document.baseline is None else [_baseline_point(document.baseline)]
    for at, run in enumerate(document.runs):
        if run.status is RunStatus.OK:
            name = f"{run.target} {run.precision}".strip()
            found.append(
                Point(
                    name=name,
                    latency=run.latency_ms,
                    metric=run.metric,
                    sqnr_db=run.sqnr_db,
                    size_bytes=run.size_bytes,
                    run=at,
                )
            )
    return found


def _baseline_point(baseline: Baseline) -> Point:
    return Point(
        name="eager fp32 (baseline)",
        latency=baseline.latency_ms,
        metric=baseline.metric,
        sqnr_db=None,
        size_bytes=baseline.size_bytes or None,
        run=None,
    )


class _Axis(pg.AxisItem):
    """An axis whose numbers carry their unit; names of bars where they are given."""

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)


class ChartsPanel(Panel):
    """Three plots side by side. A click on a bar or a point selects its run."""

    title = "Charts"
    shows = frozenset({Part.RUNS, Part.SELECTION})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Build the empty plots."""
        super().__init__(session, theme)
        self._points: list[Point] = []
        self._shown: tuple[object, ...] = ()
        self.latency, self.trade_off, self.size = (self._plot(name) for name in ("Latency", "Accuracy", "Size"))
        split = QSplitter()
        split.setHandleWidth(1)
        for plot in (self.latency, self.trade_off, self.size):
            split.addWidget(plot)
        split.setSizes([360, 300, 300])
        self._empty = EmptyState("chart")
        self._empty.say("No charts yet", "They appear as soon as a target has been measured.")
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(split)
        self.setLayout(column(self._pages))
        self.restyle(theme.colours)

    def _plot(self, name: str) -> pg.PlotWidget:
        plot = pg.PlotWidget(axisItems={"bottom": _Axis("bottom"), "left": _Axis("left")})
        plot.setAccessibleName(name)
        plot.setMenuEnabled(False)
        plot.hideButtons()
        plot.setMinimumWidth(120)
        plot.scene().sigMouseClicked.connect(lambda event, plot=plot: self._clicked(plot, event))
        return plot

    def update_from(self, document: Document) -> None:
        """Draw what was measured."""
        wanted = (document.runs, document.baseline, document.selection.run)
        if self._shown and all(old is new for old, new in zip(self._shown, wanted, strict=True)):
            return
        self._shown = wanted
        self._points = points_of(document)
        self._pages.setCurrentIndex(1 if any(one.latency or one.size_bytes for one in self._points) else 0)
        self._draw_latency(document)
        self._draw_trade_off(document)
        self._draw_size(document)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)
        for plot in (self.latency, self.trade_off, self.size):
            plot.setBackground(colours.surface)
            for side in ("bottom", "left"):
                axis = plot.getAxis(side)
                axis.setPen(pg.mkPen(colours.border))
                axis.setTextPen(pg.mkPen(colours.text_dim))
        self._shown = ()
        self.update_from(self.session.document)

    # --- drawing ---

    def _draw_latency(self, document: Document) -> None:
        points = [one for one in self._points if one.latency is not None]
        plot = self._start(self.latency, "Latency, ms: median, p10 – p90")
        for at, one in enumerate(points):
            latency = one.latency
            if latency is None:
                continue
            y = len(points) - 1 - at
            colour = self._colour(one, document)
            tip = f"{one.name}: {ms_text(latency.p50)}, p10 – p90 {spread_text(latency)}, {latency.n} rounds"
            self._bar(plot, y, latency.p50, colour, tip)
            plot.addItem(_whisker(y, latency, self.colours.text))
            self._value(plot, y, max(latency.p50, latency.p90), ms_text(latency.p50))
        self._name_rows(plot, points)
        top = max((max(one.latency.p90, one.latency.p50) for one in points if one.latency), default=1.0)
        self._limits(plot, top, len(points))

    def _draw_size(self, document: Document) -> None:
        points = [one for one in self._points if one.size_bytes]
        plot = self._start(self.size, "Size, MB")
        for at, one in enumerate(points):
            y, size = len(points) - 1 - at, (one.size_bytes or 0) / 1e6
            text = bytes_text(one.size_bytes)
            self._bar(plot, y, size, self._colour(one, document), f"{one.name}: {text}")
            self._value(plot, y, size, text)
        self._name_rows(plot, points)
        self._limits(plot, max(((one.size_bytes or 0) / 1e6 for one in points), default=1.0), len(points))

    def _draw_trade_off(self, document: Document) -> None:
        has_metric = any(one.metric is not None for one in self._points)
        title = "Metric against latency, ms" if has_metric else "SQNR in dB against latency, ms"
        plot = self._start(self.trade_off, title)
        plot.getAxis("left").setTicks(None)
        plot.getAxis("left").setStyle(showValues=True)
        plot.getAxis("left").setWidth(None)
        shown = []
        for one in self._points:
            value = one.metric if has_metric else one.sqnr_db
            if one.latency is None or value is None:
                continue
            shown.append((one.latency.p50, value))
            colour = self._colour(one, document)
            symbol = "d" if one.run is None else "o"
            spot = pg.ScatterPlotItem(
                [one.latency.p50], [value], size=12, symbol=symbol, brush=pg.mkBrush(colour),
                pen=pg.mkPen(self.colours.text), data=[one.run], hoverable=True, tip=None,
            )  # fmt: skip
            text = metric_text(value) if has_metric else decibel_text(value)
            drop = self._drop(document, one)
            spot.setToolTip(f"{one.name}: {ms_text(one.latency.p50)}, {text}{drop}")
            plot.addItem(spot)
            name = pg.TextItem(one.name.removesuffix(" (baseline)"), color=self.colours.text_dim, anchor=(0.5, 1.25))
            name.setPos(one.latency.p50, value)
            plot.addItem(name)
        _fit_points(plot, shown)

    def _drop(self, document: Document, one: Point) -> str:
        drop = document.runs[one.run].metric_drop if one.run is not None else None
        return f", drop {percent_text(drop)}" if drop is not None else ""

    def _start(self, plot: pg.PlotWidget, title: str) -> pg.PlotItem:
        item = plot.getPlotItem()
        item.clear()
        item.setTitle(title, color=self.colours.text, size="10pt")
        item.showGrid(x=True, y=False, alpha=0.18)
        item.getViewBox().setMouseEnabled(x=False, y=False)
        return item

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

    def _name_rows(self, plot: pg.PlotItem, points: Sequence[Point]) -> None:
        axis = plot.getAxis("left")
        metrics = QFontMetrics(self.font())
        names = [
            metrics.elidedText(one.name.removesuffix(" (baseline)"), Qt.TextElideMode.ElideRight, _WIDEST_NAME_PX)
            for one in points
        ]
        axis.setTicks([[(len(points) - 1 - at, name) for at, name in enumerate(names)]])
        axis.setWidth(max((metrics.horizontalAdvance(name) for name in names), default=40) + 14)

    def _limits(self, plot: pg.PlotItem, top: float, rows: int) -> None:
        plot.setXRange(0, (top or 1.0) * 1.32, padding=0)
        plot.setYRange(-0.7, max(1, rows) - 0.3, padding=0)

    def _colour(self, point: Point, document: Document) -> str:
        """The colour of a run is that of its row, so that all three plots agree; the selected one is the accent."""
        if point.run is not None and point.run == document.selection.run:
            return self.colours.accent
        if point.run is None:
            return self.colours.text_dim
        colour = QColor(self.colours.series[(point.run + 1) % len(self.colours.series)])
        return colour.name()

    def _clicked(self, plot: pg.PlotWidget, event: object) -> None:
        item = plot.getPlotItem()
        place = item.vb.mapSceneToView(event.scenePos())  # type: ignore[attr-defined]
        if plot is self.trade_off:
            run = _nearest(item, event)
        else:
            has_value = (lambda one: one.latency) if plot is self.latency else (lambda one: one.size_bytes)
            points = [one for one in self._points if has_value(one)]
            at = len(points) - 1 - round(place.y())
            run = points[at].run if 0 <= at < len(points) else None
        if run is not None:
            self.session.select_run(run)


def _whisker(y: float, latency: Latency, colour: str) -> pg.ErrorBarItem:
    return pg.ErrorBarItem(
        x=np.array([latency.p50]),
        y=np.array([y]),
        left=np.array([latency.p50 - latency.p10]),
        right=np.array([latency.p90 - latency.p50]),
        beam=_BAR / 2,
        pen=pg.mkPen(colour, width=1.5),
    )


def _fit_points(plot: pg.PlotItem, shown: Sequence[tuple[float, float]]) -> None:
    """Room around the points, so that no name is cut off."""
    if not shown:
        return
    xs, ys = [x for x, _ in shown], [y for _, y in shown]
    width = max(xs) - min(xs) or max(xs) or 1.0
    height = max(ys) - min(ys) or abs(max(ys)) * 0.05 or 1.0
    plot.setXRange(max(0.0, min(xs) - 0.3 * width), max(xs) + 0.3 * width, padding=0)
    plot.setYRange(min(ys) - 0.2 * height, max(ys) + 0.35 * height, padding=0)


def _nearest(item: pg.PlotItem, event: object) -> int | None:
    """The run whose point is under the mouse."""
    for each in item.items:
        if isinstance(each, pg.ScatterPlotItem):
            under = each.pointsAt(each.mapFromScene(event.scenePos()))  # type: ignore[attr-defined]
            if len(under):
                run = under[0].data()
                return int(run) if run is not None else None
    return None
