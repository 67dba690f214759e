"""The charts: latency with its spread, accuracy against latency, and size. Loaded when first seen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QSplitter, QStackedWidget, QWidget

from ace_studio.gui.formatting import bytes_text, decibel_text, metric_text, ms_text, percent_text, spread_text
from ace_studio.gui.panel import Panel
from ace_studio.gui.theme import Colours, Theme
from ace_studio.gui.widgets import ElidedLabel, EmptyState, column
from ace_studio.records.results import Baseline, Latency, RunStatus
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_BAR = 0.56
_WIDEST_NAME_PX = 150
_BASELINE = " (baseline)"
_NAME_ANCHORS = (1.35, -0.35, 2.2, -1.2)
"""Where a name goes: above its point, below it, further up, further down; in heights of the text."""


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
    targets = Counter(run.target for run in document.runs if run.status is RunStatus.OK)
    for at, run in enumerate(document.runs):
        if run.status is RunStatus.OK:
            name = run.target if targets[run.target] == 1 else f"{run.target} {run.precision}"
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
        name=f"{baseline.name}{_BASELINE}",
        latency=baseline.latency_ms,
        metric=baseline.metric,
        sqnr_db=None,
        size_bytes=baseline.size_bytes or None,
        run=None,
    )


class Chart(QWidget):
    """One plot under its title. What depends on pixels is arranged anew whenever the size changes."""

    def __init__(self, title: str) -> None:
        """Build the empty plot."""
        super().__init__()
        self.title = ElidedLabel(title)
        self.title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.widget = pg.PlotWidget()
        self.widget.setAccessibleName(title)
        self.widget.setMenuEnabled(False)
        self.widget.hideButtons()
        self.plot: pg.PlotItem = self.widget.getPlotItem()
        self.plot.getViewBox().setMouseEnabled(x=False, y=False)
        self.plot.getViewBox().sigResized.connect(lambda _: self.arrange())
        for side in ("bottom", "left"):
            self.plot.getAxis(side).enableAutoSIPrefix(False)
        self._top = 1.0
        self._value_px = 0
        self._names: list[tuple[pg.TextItem, float, float]] = []
        self.setMinimumWidth(140)
        self.setLayout(column(self.title, self.widget, gap=2))
        self.layout().setContentsMargins(4, 8, 4, 4)  # type: ignore[union-attr]

    def start(self, title: str, colours: Colours) -> pg.PlotItem:
        """Empty the plot for another drawing."""
        self.title.setText(title)
        self.plot.clear()
        self._names = []
        self._value_px = 0
        self.plot.showGrid(x=True, y=False, alpha=0.15)
        self.widget.setBackground(colours.surface)
        for side in ("bottom", "left"):
            axis = self.plot.getAxis(side)
            axis.setPen(pg.mkPen(colours.border))
            axis.setTextPen(pg.mkPen(colours.text_dim))
            axis.setZValue(-1000)
        return self.plot

    def keep_room(self, top: float, text: str) -> None:
        """Bars reach up to ``top``, and a text like this one follows the longest."""
        self._top = top or 1.0
        self._value_px = self.fontMetrics().horizontalAdvance(text) + 18
        self.arrange()

    def keep_names(self, names: list[tuple[pg.TextItem, float, float]]) -> None:
        """Names at points: placed so that none lies on another."""
        self._names = sorted(names, key=lambda name: name[1])
        self.arrange()

    def arrange(self) -> None:
        """Fit everything to the size that the plot has now."""
        width = max(40.0, self.plot.getViewBox().width())
        if self._value_px:
            self.plot.setXRange(0, self._top * width / max(30.0, width - self._value_px), padding=0)
        if self._names:
            self._arrange_names(width)

    def _arrange_names(self, width: float) -> None:
        xs, ys = [x for _, x, _ in self._names], [y for _, _, y in self._names]
        across = max(xs) - min(xs) or max(xs) or 1.0
        along = max(ys) - min(ys) or abs(max(ys)) * 0.05 or 1.0
        low, high = min(xs) - 0.25 * across, max(xs) + 0.25 * across
        self.plot.setXRange(low, high, padding=0)
        self.plot.setYRange(min(ys) - 0.45 * along, max(ys) + 0.45 * along, padding=0)
        ends = [-math.inf] * len(_NAME_ANCHORS)
        for item, x, _ in self._names:
            half = self.fontMetrics().horizontalAdvance(item.textItem.toPlainText()) / 2 + 4
            centre = (x - low) / (high - low) * width
            centre_in = min(max(centre, half), width - half)
            slot = next((at for at, end in enumerate(ends) if end <= centre_in - half), 0)
            ends[slot] = centre_in + half
            # An anchor beside the middle keeps the name inside the plot.
            item.setAnchor((0.5 + (centre - centre_in) / (2 * half), _NAME_ANCHORS[slot]))


class ChartsPanel(Panel):
    """Three plots side by side. A click on a bar or a point selects its run."""

    title = "Charts"
    shows = frozenset({Part.RUNS, Part.SELECTION})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Build the empty plots."""
        super().__init__(session, theme)
        self._points: list[Point] = []
        self._shown: tuple[object, ...] = ()
        self.latency, self.trade_off, self.sizes = Chart("Latency"), Chart("Accuracy"), Chart("Size")
        split = QSplitter()
        split.setHandleWidth(1)
        for chart in (self.latency, self.trade_off, self.sizes):
            chart.widget.scene().sigMouseClicked.connect(partial(self._clicked, chart))
            split.addWidget(chart)
        split.setSizes([360, 300, 300])
        self._empty = EmptyState("chart")
        self._empty.say("No charts yet", "They appear as soon as a target has been measured.")
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(split)
        self.setLayout(column(self._pages))
        self.restyle(theme.colours)

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
        self._draw_sizes(document)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)
        self._shown = ()
        self.update_from(self.session.document)

    # --- drawing ---

    def _draw_latency(self, document: Document) -> None:
        points = [one for one in self._points if one.latency is not None]
        plot = self.latency.start("Latency in ms: median, p10 – p90", self.colours)
        tops = []
        for at, one in enumerate(points):
            latency = one.latency
            if latency is None:
                continue
            y = len(points) - 1 - at
            tip = f"{one.name}: {ms_text(latency.p50)}, p10 – p90 {spread_text(latency)}, {latency.n} rounds"
            self._bar(plot, y, latency.p50, self._colour(one, document), tip)
            plot.addItem(_whisker(y, latency, self.colours.text))
            tops.append((max(latency.p50, latency.p90), ms_text(latency.p50)))
            self._value(plot, y, *tops[-1])
        self._finish_rows(self.latency, points, tops)

    def _draw_sizes(self, document: Document) -> None:
        points = [one for one in self._points if one.size_bytes]
        plot = self.sizes.start("Size in MB", self.colours)
        tops = []
        for at, one in enumerate(points):
            y = len(points) - 1 - at
            tops.append(((one.size_bytes or 0) / 1e6, bytes_text(one.size_bytes)))
            self._bar(plot, y, tops[-1][0], self._colour(one, document), f"{one.name}: {tops[-1][1]}")
            self._value(plot, y, *tops[-1])
        self._finish_rows(self.sizes, points, tops)

    def _draw_trade_off(self, document: Document) -> None:
        has_metric = any(one.metric is not None for one in self._points)
        words = "Metric against latency in ms" if has_metric else "SQNR in dB against latency in ms"
        plot = self.trade_off.start(words, self.colours)
        names = []
        for one in self._points:
            value = one.metric if has_metric else one.sqnr_db
            if one.latency is None or value is None:
                continue
            spot = pg.ScatterPlotItem(
                [one.latency.p50],
                [value],
                size=12,
                symbol="d" if one.run is None else "o",
                brush=pg.mkBrush(self._colour(one, document)),
                pen=pg.mkPen(self.colours.text),
                data=[one.run],
            )
            text = metric_text(value) if has_metric else decibel_text(value)
            spot.setToolTip(f"{one.name}: {ms_text(one.latency.p50)}, {text}{self._drop(document, one)}")
            plot.addItem(spot)
            name = pg.TextItem(one.name.removesuffix(_BASELINE), color=self.colours.text)
            name.setPos(one.latency.p50, value)
            plot.addItem(name)
            names.append((name, one.latency.p50, value))
        self.trade_off.keep_names(names)

    def _drop(self, document: Document, one: Point) -> str:
        drop = document.runs[one.run].metric_drop if one.run is not None else None
        return f", drop {percent_text(drop)}" if drop is not None else ""

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
        axis = chart.plot.getAxis("left")
        metrics = self.fontMetrics()
        widest = max(60, min(_WIDEST_NAME_PX, int(chart.width() * 0.4) if chart.width() > 100 else _WIDEST_NAME_PX))
        names = [
            metrics.elidedText(one.name.removesuffix(_BASELINE), Qt.TextElideMode.ElideRight, widest) for one in points
        ]
        axis.setTicks([[(len(points) - 1 - at, name) for at, name in enumerate(names)]])
        axis.setWidth(max((metrics.horizontalAdvance(name) for name in names), default=40) + 14)
        chart.plot.setYRange(-0.7, max(1, len(points)) - 0.3, padding=0)
        longest = max((text for _, text in tops), key=len, default="")
        chart.keep_room(max((top for top, _ in tops), default=1.0), longest)

    def _colour(self, point: Point, document: Document) -> str:
        """The colour of a run is that of its row, so that all three plots agree; the selected one is the accent."""
        if point.run is not None and point.run == document.selection.run:
            return self.colours.accent
        if point.run is None:
            return self.colours.text_dim
        colour = QColor(self.colours.series[(point.run + 1) % len(self.colours.series)])
        return colour.name()

    def _clicked(self, chart: Chart, event: object) -> None:
        if chart is self.trade_off:
            run = _nearest(chart.plot, event)
        else:
            points = [one for one in self._points if (one.latency if chart is self.latency else one.size_bytes)]
            place = chart.plot.vb.mapSceneToView(event.scenePos())  # type: ignore[attr-defined]
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


def _nearest(item: pg.PlotItem, event: object) -> int | None:
    """The run whose point is under the mouse."""
    for each in item.items:
        if isinstance(each, pg.ScatterPlotItem):
            under = each.pointsAt(each.mapFromScene(event.scenePos()))  # type: ignore[attr-defined]
            if len(under):
                run = under[0].data()
                return int(run) if run is not None else None
    return None
