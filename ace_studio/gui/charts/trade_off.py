"""Every run as a point of cost and loss, the Pareto front, and the bounds of the goal as lines that can be dragged."""

from collections.abc import Sequence

import pyqtgraph as pg
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QWidget

from ace_studio.gui.charts.axes import COSTS, LOSSES, AxisRow, device_axes
from ace_studio.gui.charts.chart import PlotView, under_mouse
from ace_studio.gui.charts.points import Point, colour_of, front_of, points_of
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.fields import ComboBox, DecimalBox
from ace_studio.gui.widgets.layouts import CLOSE, GAP, Flow, row
from ace_studio.gui.widgets.small import fill_combo, label, quiet
from ace_studio.gui.words.formatting import bytes_text, decibel_text, ms_text, percent_text
from ace_studio.gui.words.goal_bounds import BOUNDS, BoundRow
from ace_studio.gui.words.steps import why_fixed
from ace_studio.records.goals import Miss, latency_ratio, misses, run_figures
from ace_studio.records.results import SearchStep, TargetRun
from ace_studio.session.document import Document
from ace_studio.session.session import Session


class TradeOff(PlotView):
    """A click on a point selects its run; dragging a line sets the goal."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.cost, self.loss = (
            ComboBox(name, [(axis.text, axis.id) for axis in rows], chosen=self._choose_axes)
            for rows, name in ((COSTS, tr("Cost")), (LOSSES, tr("Loss")))
        )
        self._has_chosen = False
        self.cost_line, self.loss_line = GoalLine(session), GoalLine(session)
        self._verdict = label("", "dim", wrap=False)
        against = label(tr("against"), "dim", wrap=False)
        for words in (against, self._verdict):
            words.setMinimumHeight(self.cost.sizeHint().height())
        # A flow layout: a single row would be wider than the panel.
        tools = Flow(self.cost, self.cost_line, against, self.loss, self.loss_line, self._verdict)
        tools.setContentsMargins(GAP, CLOSE, GAP, 0)
        self.lines: dict[str, pg.InfiniteLine] = {}
        self.steps: list[tuple[float, float]] = []
        """The points of the plans that the search tried."""
        self.predicted: list[tuple[float, float]] = []
        """The points of mixtures that the search predicts to be on the front and has not built."""
        self._spots: list[tuple[pg.ScatterPlotItem, Point]] = []
        self.show_plot(tr("Trade-off"), tools)

    def _choose_axes(self) -> None:
        self._has_chosen = True
        self.update_from(self.session.document)

    def missing(self, document: Document) -> str:
        """Needs at least one run with a cost and a loss."""
        if any(_placed(document, cost, loss) for cost in (*COSTS, *device_axes(document)) for loss in LOSSES):
            return ""
        return tr("Each run becomes a point as soon as its latency or size, and its accuracy, are known.")

    def update_from(self, document: Document) -> None:
        """Draw points, front and lines."""
        if not self._has_chosen:
            has_drop = any(run.metric_drop is not None for run in document.runs)
            with quiet(self.loss):
                self.loss.setCurrentIndex(0 if has_drop else 1)
        costs = {axis.id: axis for axis in (*COSTS, *device_axes(document))}
        chosen = self.cost.currentData() if self.cost.currentData() in costs else COSTS[0].id
        fill_combo(self.cost, [(axis.text, axis.id) for axis in costs.values()], chosen)
        cost, loss = costs[chosen], LOSSES[self.loss.currentIndex()]
        placed = _placed(document, cost, loss)
        plot = self.chart.start(tr("{loss} against {cost}", loss=loss.text, cost=cost.text), self.colours, y_grid=True)
        plot.setLabel("bottom", cost.title, color=self.colours.text_dim)
        plot.setLabel("left", loss.title, color=self.colours.text_dim)
        self._draw_front(plot, placed, loss)
        self._draw_steps(plot, document, cost, loss)
        self._draw_predicted(plot, document, cost, loss)
        names = self._draw_points(plot, placed, document)
        lines = self._draw_lines(plot, document, cost, loss)
        marked = [*self.steps, *self.predicted]
        xs, ys = [x for x, _ in marked], [y for _, y in marked]
        for side, places in (("x", xs), ("y", ys)):
            places.extend([lines[side]] if side in lines else ())
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

    def _draw_predicted(self, plot: pg.PlotItem, document: Document, cost: AxisRow, loss: AxisRow) -> None:
        """What the search knows of the front without having built it, as small hollow circles."""
        self.predicted = []
        for point in document.result.front if document.result else ():
            step = SearchStep(
                target=point.target,
                low=point.low,
                high=point.high,
                kept_high=point.kept_high,
                of=point.of,
                sqnr_db=point.predicted_db,
                size_bytes=point.predicted_bytes,
                latency_ratio=point.predicted_ratio,
            )
            x, y = cost.of_step(step, document), loss.of_step(step, document)
            if not point.built and x is not None and y is not None:
                circle = pg.ScatterPlotItem(
                    [x], [y], size=8, symbol="o", pen=pg.mkPen(self.colours.text_dim), brush=None, data=[None]
                )
                kept = _kept_words(step)
                circle.setToolTip(tr("predicted, not built: {target}, {kept}", target=point.target, kept=kept))
                plot.addItem(circle)
                self.predicted.append((x, y))

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
            names.append((self.chart.write(point.short_name, x, y, colour=self.colours.text), x, y))
        self._tint(document)
        return names

    def _tint(self, document: Document) -> None:
        """Points that miss the goal are grey and hollow; the tooltip says by how much."""
        goal = document.recipe.goal
        for spot, point in self._spots:
            run = document.runs[point.run] if point.run is not None else None
            missed = misses(run_figures(run, document.baseline), goal) if run is not None else ()
            colour = self.colours.faded if missed else colour_of(point.run, document, self.colours)
            spot.setBrush(pg.mkBrush(None) if missed else pg.mkBrush(colour))
            is_selected = point.run is not None and point.run == document.selection.run
            edge = self.colours.accent if is_selected else colour if missed else self.colours.text
            spot.setPen(pg.mkPen(edge, width=2.5 if is_selected else 1.5))
            spot.setToolTip(_tip(point, run, missed, document))

    def _draw_lines(self, plot: pg.PlotItem, document: Document, cost: AxisRow, loss: AxisRow) -> dict[str, float]:
        self.lines, found = {}, {}
        for side, axis in (("x", cost), ("y", loss)):
            value = getattr(document.recipe.goal, axis.bound) if axis.bound else None
            place = None if value is None else axis.from_goal(value, document)
            if place is None:
                continue
            found[side] = place
            line = self.lines[side] = pg.InfiniteLine(
                pos=place,
                angle=90 if side == "x" else 0,
                movable=document.read_only is None,
                pen=pg.mkPen(self.colours.warn, width=2, style=Qt.PenStyle.DashLine),
                hoverPen=pg.mkPen(self.colours.warn, width=4),
                label=f"{tr('at most') if axis.is_most else tr('at least')} {axis.words(place)}",
                labelOpts={"color": self.colours.warn, "position": 0.94, "fill": self.colours.surface},
            )
            line.setToolTip(why_fixed(document) or tr("Drag to set the goal: runs beyond the line miss it"))
            line.sigDragged.connect(lambda moved, axis=axis: self._dragged(moved, axis))
            line.sigPositionChangeFinished.connect(lambda moved, axis=axis: self._dropped(moved, axis))
            plot.addItem(line)
        return found

    def _dragged(self, line: pg.InfiniteLine, axis: AxisRow) -> None:
        """During a drag, the points show which runs would miss."""
        document = self.session.document
        value = axis.to_goal(float(line.value()), document)
        line.label.setFormat(f"{tr('at most') if axis.is_most else tr('at least')} {axis.words(float(line.value()))}")
        goal = replace(document.recipe.goal, **{axis.bound: value})
        self._tint(replace(document, recipe=replace(document.recipe, goal=goal)))

    def _dropped(self, line: pg.InfiniteLine, axis: AxisRow) -> None:
        value = axis.to_goal(float(line.value()), self.session.document)
        (self.loss_line if axis in LOSSES else self.cost_line).set_goal(value)

    def _show_bounds(self, document: Document, cost: AxisRow, loss: AxisRow) -> None:
        chosen = document.result.chosen if document.result else None
        run = document.runs[chosen] if chosen is not None and chosen < len(document.runs) else None
        self.cost_line.setVisible(bool(cost.bound))
        for line, axis in ((self.cost_line, cost), (self.loss_line, loss)):
            line.setEnabled(document.read_only is None)
            line.setToolTip(why_fixed(document))
            if not axis.bound:
                continue
            bound = next(one for one in BOUNDS if one.field == axis.bound)
            value = axis.of_run(run, document) if run is not None else None
            start = axis.to_goal(value, document) if value is not None else None
            line.show_bound(bound, getattr(document.recipe.goal, axis.bound), start=start)

    def _say(self, document: Document, placed: list[tuple[Point, float, float]]) -> None:
        runs = [document.runs[point.run] for point, _, _ in placed if point.run is not None]
        good = sum(not misses(run_figures(run, document.baseline), document.recipe.goal) for run in runs)
        has_goal = document.recipe.goal.has_bound
        self._verdict.setText(
            tr("{good} of {count} meet the goal", good=good, count=len(runs)) if has_goal else tr("no goal is set")
        )
        self.chart.describe(
            f"{self._verdict.text()}. "
            + "; ".join(_tip(one, document.runs[one.run] if one.run is not None else None, (), document)
                        for one, _, _ in placed)
        )  # fmt: skip

    def clicked(self, event: object) -> None:
        """Select the run under the mouse."""
        run = under_mouse(self.chart.plot, event)
        if isinstance(run, int):
            self.session.view.select_run(run)


def _placed(document: Document, cost: AxisRow, loss: AxisRow) -> list[tuple[Point, float, float]]:
    """The points that have a cost and a loss, with their places."""
    found = []
    for point in points_of(document):
        run = document.runs[point.run] if point.run is not None else None
        x = cost.of_baseline(document) if run is None else cost.of_run(run, document)
        y = loss.of_baseline(document) if run is None else loss.of_run(run, document)
        if x is not None and y is not None:
            found.append((point, x, y))
    return found if any(point.run is not None for point, _, _ in found) else []


def _kept_words(step: SearchStep) -> str:
    if step.kept_high:
        return tr("{kept_high} of {total} ops at {high}", kept_high=step.kept_high, total=step.of, high=step.high)
    return tr("all {total} ops at {low}", total=step.of, low=step.low)


def _step_words(at: int, step: SearchStep) -> str:
    kept = _kept_words(step)
    verdict = tr("meets the goal") if step.meets else "; ".join((tr("misses the goal"), *step.misses))
    return tr(
        "step {number} of the search, {target}: {kept}\n{verdict}",
        number=at + 1,
        target=step.target,
        kept=kept,
        verdict=verdict,
    )


def _tip(point: Point, run: TargetRun | None, missed: Sequence[Miss], document: Document) -> str:
    parts = [point.name]
    if point.latency is not None:
        ratio = latency_ratio(run, document.baseline) if run is not None else None
        parts.append(ms_text(point.latency.p50) + (tr(" ({ratio:.2f} × eager)", ratio=ratio) if ratio else ""))
    if point.size_bytes:
        parts.append(bytes_text(point.size_bytes))
    if run is not None and run.metric_drop is not None:
        parts.append(tr("drop {drop}", drop=percent_text(run.metric_drop)))
    if point.sqnr_db is not None:
        parts.append(f"SQNR {decibel_text(point.sqnr_db)}")
    return ", ".join(parts) + "".join(tr("\nmisses: {words}", words=words) for words in missed)


class GoalLine(QWidget):
    """The bound of one axis beside the plot: a box that switches it, and its number."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._start: float | None = None
        self.bound: BoundRow = BOUNDS[0]
        self.check = QCheckBox()
        self.number = DecimalBox(keyboardTracking=False, maximumWidth=130)
        self.check.toggled.connect(self._toggle)
        self.number.valueChanged.connect(self._set)
        self.setLayout(row(self.check, self.number, gap=CLOSE))

    def show_bound(self, bound: BoundRow, value: float | None, *, start: float | None) -> None:
        """Show another bound or value; ``start`` is its first value when it is switched on."""
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
        """Set the bound in the goal; undo takes it back."""
        if value is not None:
            low, high = self.bound.low / self.bound.scale, self.bound.high / self.bound.scale
            value = round(min(high, max(low, value)), 6)
        self._session.choices.set_goal(replace(self._session.document.recipe.goal, **{self.bound.field: value}))
