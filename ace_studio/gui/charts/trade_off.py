"""Every run as a point: what it costs against what it loses, the front, and the lines of the goal, to be dragged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyqtgraph as pg
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QWidget

from ace_studio.gui.charts.chart import Chart, ChartView, under_mouse
from ace_studio.gui.charts.points import Point, colour_of, front_of, latency_ratio, missed, points_of
from ace_studio.gui.formatting import bytes_text, decibel_text, ms_text, percent_text
from ace_studio.gui.plan_form.goal import BOUNDS, BoundRow
from ace_studio.gui.theme import Colours
from ace_studio.gui.widgets import GAP, column, inset, label, quiet, row
from ace_studio.records.results import SearchStep, TargetRun
from ace_studio.session.document import Document
from ace_studio.session.session import Session


@dataclass(frozen=True, kw_only=True)
class AxisRow:
    """One quantity that runs are compared by. Positions in the plot are in its own unit."""

    id: str
    text: str
    title: str
    """With its unit, for the axis."""
    is_most: bool
    """Less is better, and the goal is an upper bound."""
    of_run: Callable[[TargetRun, Document], float | None]
    of_baseline: Callable[[Document], float | None]
    of_step: Callable[[SearchStep, Document], float | None]
    """Of a plan that a search tried."""
    bound: str
    """Row of `BOUNDS` that its line sets."""
    words: Callable[[float], str]
    from_goal: Callable[[float, Document], float | None]
    """Value of the goal -> position in the plot; None where that cannot be known yet."""
    to_goal: Callable[[float, Document], float | None]


def _baseline_ms(document: Document) -> float | None:
    baseline = document.baseline
    return baseline.latency_ms.p50 if baseline is not None and baseline.latency_ms is not None else None


def _times_baseline(ratio: float | None, document: Document) -> float | None:
    whole = _baseline_ms(document)
    return ratio * whole if whole and ratio is not None else None


def _over_baseline(latency_ms: float, document: Document) -> float | None:
    whole = _baseline_ms(document)
    return latency_ms / whole if whole else None


LATENCY = AxisRow(
    id="latency", text="latency", title="latency in ms", is_most=True, bound="max_latency_ratio", words=ms_text,
    of_run=lambda run, _: run.latency_ms.p50 if run.latency_ms else None, of_baseline=_baseline_ms,
    of_step=lambda step, document: _times_baseline(step.latency_ratio, document),
    from_goal=_times_baseline, to_goal=_over_baseline,
)  # fmt: skip
SIZE = AxisRow(
    id="size", text="size", title="size in MB", is_most=True, bound="max_size_mb",
    words=lambda size: bytes_text(size * 1e6),
    of_run=lambda run, _: run.size_bytes / 1e6 if run.size_bytes else None,
    of_step=lambda step, _: step.size_bytes / 1e6 if step.size_bytes else None,
    of_baseline=lambda document: document.baseline.size_bytes / 1e6
    if document.baseline and document.baseline.size_bytes else None,
    from_goal=lambda value, _: value, to_goal=lambda value, _: value,
)  # fmt: skip
DROP = AxisRow(
    id="drop", text="accuracy drop", title="accuracy drop in %", is_most=True, bound="max_drop",
    words=lambda drop: percent_text(drop / 100),
    of_run=lambda run, _: None if run.metric_drop is None else 100 * run.metric_drop,
    of_step=lambda step, _: None if step.metric_drop is None else 100 * step.metric_drop,
    of_baseline=lambda document: 0.0 if document.baseline and document.baseline.metric is not None else None,
    from_goal=lambda value, _: 100 * value, to_goal=lambda value, _: value / 100,
)  # fmt: skip
SQNR = AxisRow(
    id="sqnr", text="fidelity (SQNR)", title="SQNR in dB", is_most=False, bound="min_sqnr_db", words=decibel_text,
    of_run=lambda run, _: None if run.sqnr_db is None else min(run.sqnr_db, 120.0), of_baseline=lambda _: None,
    of_step=lambda step, _: None if step.sqnr_db is None else min(step.sqnr_db, 120.0),
    from_goal=lambda value, _: value, to_goal=lambda value, _: value,
)  # fmt: skip
COSTS = (LATENCY, SIZE)
LOSSES = (DROP, SQNR)


class GoalLine(QWidget):
    """The bound of one axis beside the plot: a box that switches it, and its number."""

    def __init__(self, session: Session) -> None:
        """Start without an axis."""
        super().__init__()
        self._session = session
        self._start: float | None = None
        self.bound: BoundRow = BOUNDS[0]
        self.check = QCheckBox()
        self.number = QDoubleSpinBox()
        self.number.setKeyboardTracking(False)
        inset(self.number)
        self.check.toggled.connect(self._toggle)
        self.number.valueChanged.connect(self._set)
        self.setLayout(row(self.check, self.number, gap=6))

    def show_bound(self, bound: BoundRow, value: float | None, *, start: float | None) -> None:
        """Another bound, or another value of it; ``start`` is where it begins if it is switched on."""
        self.bound, self._start = bound, start
        with quiet(self.check, self.number):
            self.check.setText(bound.text.rpartition(" at ")[1].strip() + " " + bound.text.rpartition(" ")[2])
            self.check.setAccessibleName(bound.text)
            self.check.setToolTip(bound.text + (f". {bound.tip}" if bound.tip else ""))
            self.check.setChecked(value is not None)
            self.number.setAccessibleName(bound.text)
            self.number.setDecimals(bound.decimals)
            self.number.setSuffix(bound.suffix)
            self.number.setRange(bound.low, bound.high)
            self.number.setSingleStep(10 ** -min(1, bound.decimals))
            self.number.setEnabled(value is not None)
            usual = bound.start if start is None else start * bound.scale
            self.number.setValue(usual if value is None else value * bound.scale)

    def _toggle(self, is_on: bool) -> None:
        start = self.bound.start / self.bound.scale if self._start is None else self._start
        self.set_goal(start if is_on else None)

    def _set(self, value: float) -> None:
        if self.check.isChecked():
            self.set_goal(value / self.bound.scale)

    def set_goal(self, value: float | None) -> None:
        """Make it the goal, as a choice that can be undone."""
        if value is not None:
            low, high = self.bound.low / self.bound.scale, self.bound.high / self.bound.scale
            value = round(min(high, max(low, value)), 6)
        self._session.set_goal(replace(self._session.document.recipe.goal, **{self.bound.field: value}))


class TradeOff(ChartView):
    """A click on a point selects its run; a line that is dragged becomes the goal."""

    def __init__(self, session: Session, colours: Colours) -> None:
        """Build the empty plot."""
        super().__init__(session, colours)
        self.cost, self.loss = QComboBox(), QComboBox()
        for combo, rows, name in ((self.cost, COSTS, "Cost"), (self.loss, LOSSES, "Loss")):
            combo.setAccessibleName(name)
            for axis in rows:
                combo.addItem(axis.text, axis.id)
            combo.activated.connect(lambda _: self._choose_axes())
        self._has_chosen = False
        self.cost_line, self.loss_line = GoalLine(session), GoalLine(session)
        self._verdict = label("", "dim", wrap=False)
        against = label("against", "dim", wrap=False)
        tools = row(self.cost, self.cost_line, against, self.loss, self.loss_line, None, self._verdict)
        tools.setContentsMargins(GAP, 6, GAP, 0)
        self.chart = Chart("Trade-off")
        self.chart.widget.scene().sigMouseClicked.connect(self._clicked)
        self.lines: dict[str, pg.InfiniteLine] = {}
        self.steps: list[tuple[float, float]] = []
        """Where the plans of the search are drawn."""
        self._spots: list[tuple[pg.ScatterPlotItem, Point]] = []
        self.setLayout(column(tools, self.chart, gap=0))
        self.layout().setStretch(1, 1)  # type: ignore[union-attr]

    def _choose_axes(self) -> None:
        self._has_chosen = True
        self.update_from(self.session.document)

    def missing(self, document: Document) -> str:
        """At least one run with a cost and a loss."""
        for cost in COSTS:
            for loss in LOSSES:
                if _placed(document, cost, loss):
                    return ""
        return "Each run becomes a point as soon as its latency or size, and its accuracy, are known."

    def update_from(self, document: Document) -> None:
        """Draw points, front and lines."""
        if not self._has_chosen:
            has_drop = any(run.metric_drop is not None for run in document.runs)
            with quiet(self.loss):
                self.loss.setCurrentIndex(0 if has_drop else 1)
        cost, loss = COSTS[self.cost.currentIndex()], LOSSES[self.loss.currentIndex()]
        placed = _placed(document, cost, loss)
        plot = self.chart.start(f"{loss.text} against {cost.text}", self.colours, y_grid=True)
        plot.setLabel("bottom", cost.title, color=self.colours.text_dim)
        plot.setLabel("left", loss.title, color=self.colours.text_dim)
        self._draw_front(plot, placed, loss)
        self._draw_steps(plot, document, cost, loss)
        names = self._draw_points(plot, placed, document)
        lines = self._draw_lines(plot, document, cost, loss)
        xs = [*(x for x, _ in self.steps), *(at for at in (lines.get("x"),) if at is not None)]
        ys = [*(y for _, y in self.steps), *(at for at in (lines.get("y"),) if at is not None)]
        self.chart.keep_names(names, include=(xs, ys))
        self._show_bounds(document, cost, loss)
        self._say(document, placed)

    def _draw_front(self, plot: pg.PlotItem, placed: list[tuple[Point, float, float]], loss: AxisRow) -> None:
        sign = 1 if loss.is_most else -1
        runs = [one for one in placed if one[0].run is not None]
        front = [runs[at] for at in front_of([(x, sign * y) for _, x, y in runs])]
        pen = pg.mkPen(self.colours.accent, width=1.5)
        plot.addItem(pg.PlotDataItem([x for _, x, _ in front], [y for _, _, y in front], pen=pen))

    def _draw_steps(self, plot: pg.PlotItem, document: Document, cost: AxisRow, loss: AxisRow) -> None:
        """The plans that a search tried on its way, as small crosses."""
        self.steps = []
        for at, step in enumerate(document.result.search if document.result else ()):
            x, y = cost.of_step(step, document), loss.of_step(step, document)
            if step.run is None and x is not None and y is not None:
                cross = pg.ScatterPlotItem(
                    [x], [y], size=8, symbol="x", pen=pg.mkPen(self.colours.text_dim), brush=None, data=[None]
                )
                cross.setToolTip(_step_words(at, step))
                plot.addItem(cross)
                self.steps.append((x, y))

    def _draw_points(
        self, plot: pg.PlotItem, placed: list[tuple[Point, float, float]], document: Document
    ) -> list[tuple[pg.TextItem, float, float]]:
        names, self._spots = [], []
        for point, x, y in placed:
            spot = pg.ScatterPlotItem(
                [x], [y], size=13, symbol="d" if point.run is None else "o", data=[point.run]
            )  # fmt: skip
            self._spots.append((spot, point))
            plot.addItem(spot)
            name = pg.TextItem(point.short_name, color=self.colours.text)
            name.setPos(x, y)
            plot.addItem(name)
            names.append((name, x, y))
        self._tint(document)
        return names

    def _tint(self, document: Document) -> None:
        """Grey and hollow what misses the goal; the tip says by how much."""
        goal = document.recipe.goal
        for spot, point in self._spots:
            run = document.runs[point.run] if point.run is not None else None
            lost = missed(goal, run, document.baseline) if run is not None else []
            colour = self.colours.faded if lost else colour_of(point.run, document, self.colours)
            spot.setBrush(pg.mkBrush(None) if lost else pg.mkBrush(colour))
            is_selected = point.run is not None and point.run == document.selection.run
            edge = self.colours.accent if is_selected else colour if lost else self.colours.text
            spot.setPen(pg.mkPen(edge, width=2.5 if is_selected else 1.5))
            spot.setToolTip(_tip(point, run, lost, document))

    def _draw_lines(self, plot: pg.PlotItem, document: Document, cost: AxisRow, loss: AxisRow) -> dict[str, float]:
        self.lines, found = {}, {}
        for side, axis in (("x", cost), ("y", loss)):
            value = getattr(document.recipe.goal, axis.bound)
            place = None if value is None else axis.from_goal(value, document)
            if place is None:
                continue
            found[side] = place
            line = self.lines[side] = pg.InfiniteLine(
                pos=place,
                angle=90 if side == "x" else 0,
                movable=True,
                pen=pg.mkPen(self.colours.warn, width=2, style=Qt.PenStyle.DashLine),
                hoverPen=pg.mkPen(self.colours.warn, width=4),
                label=f"{'at most' if axis.is_most else 'at least'} {axis.words(place)}",
                labelOpts={"color": self.colours.warn, "position": 0.94, "fill": self.colours.surface},
            )
            line.setToolTip("Drag: what lies beyond misses the goal")
            line.sigDragged.connect(lambda moved, axis=axis: self._dragged(moved, axis))
            line.sigPositionChangeFinished.connect(lambda moved, axis=axis: self._dropped(moved, axis))
            plot.addItem(line)
        return found

    def _dragged(self, line: pg.InfiniteLine, axis: AxisRow) -> None:
        """While it is dragged, the points show what would miss."""
        document = self.session.document
        value = axis.to_goal(float(line.value()), document)
        line.label.setFormat(f"{'at most' if axis.is_most else 'at least'} {axis.words(float(line.value()))}")
        goal = replace(document.recipe.goal, **{axis.bound: value})
        self._tint(replace(document, recipe=replace(document.recipe, goal=goal)))

    def _dropped(self, line: pg.InfiniteLine, axis: AxisRow) -> None:
        value = axis.to_goal(float(line.value()), self.session.document)
        (self.cost_line if axis in COSTS else self.loss_line).set_goal(value)

    def _show_bounds(self, document: Document, cost: AxisRow, loss: AxisRow) -> None:
        chosen = document.result.chosen if document.result else None
        run = document.runs[chosen] if chosen is not None and chosen < len(document.runs) else None
        for line, axis in ((self.cost_line, cost), (self.loss_line, loss)):
            bound = next(one for one in BOUNDS if one.field == axis.bound)
            value = axis.of_run(run, document) if run is not None else None
            start = axis.to_goal(value, document) if value is not None else None
            line.show_bound(bound, getattr(document.recipe.goal, axis.bound), start=start)

    def _say(self, document: Document, placed: list[tuple[Point, float, float]]) -> None:
        runs = [document.runs[point.run] for point, _, _ in placed if point.run is not None]
        good = sum(not missed(document.recipe.goal, run, document.baseline) for run in runs)
        has_goal = document.recipe.goal.has_bound
        self._verdict.setText(f"{good} of {len(runs)} meet the goal" if has_goal else "no goal is set")
        self.chart.describe(
            f"{self._verdict.text()}. "
            + "; ".join(_tip(one, document.runs[one.run] if one.run is not None else None, [], document)
                        for one, _, _ in placed)
        )  # fmt: skip

    def _clicked(self, event: object) -> None:
        run = under_mouse(self.chart.plot, event)
        if isinstance(run, int):
            self.session.select_run(run)


def _placed(document: Document, cost: AxisRow, loss: AxisRow) -> list[tuple[Point, float, float]]:
    """The points that have both, with their places."""
    found = []
    for point in points_of(document):
        run = document.runs[point.run] if point.run is not None else None
        x = cost.of_baseline(document) if run is None else cost.of_run(run, document)
        y = loss.of_baseline(document) if run is None else loss.of_run(run, document)
        if x is not None and y is not None:
            found.append((point, x, y))
    return found if any(point.run is not None for point, _, _ in found) else []


def _step_words(at: int, step: SearchStep) -> str:
    kept = f"{step.kept_high} of {step.of} ops at {step.high}" if step.kept_high else f"all {step.of} ops at {step.low}"
    verdict = "meets the goal" if step.meets else "; ".join(("misses the goal", *step.misses))
    return f"step {at + 1} of the search, {step.target}: {kept}\n{verdict}"


def _tip(point: Point, run: TargetRun | None, lost: list[str], document: Document) -> str:
    parts = [point.name]
    if point.latency is not None:
        ratio = latency_ratio(run, document.baseline) if run is not None else None
        parts.append(ms_text(point.latency.p50) + (f" ({ratio:.2f} × eager)" if ratio else ""))
    if point.size_bytes:
        parts.append(bytes_text(point.size_bytes))
    if run is not None and run.metric_drop is not None:
        parts.append(f"drop {percent_text(run.metric_drop)}")
    if point.sqnr_db is not None:
        parts.append(f"SQNR {decibel_text(point.sqnr_db)}")
    return ", ".join(parts) + "".join(f"\nmisses: {words}" for words in lost)
