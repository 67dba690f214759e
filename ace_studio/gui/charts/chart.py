"""One plot under its title, and the base class of every chart in the charts panel."""

import math
from collections.abc import Callable, Iterator, Sequence

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QLabel, QLayout, QWidget

from ace_studio.gui.style import Colours
from ace_studio.gui.widgets.layouts import GAP, HAIR, TIGHT, column
from ace_studio.gui.widgets.small import ElidedLabel
from ace_studio.session.document import Document
from ace_studio.session.session import Session

_NAME_ANCHORS = (1.35, -0.35, 2.2, -1.2)
"""Where a name goes: above its point, below it, further up, further down; in heights of the text."""
_NAME_MARGIN_PX = 4
"""Above and below the letters of a name: names may overlap there."""

_NARROWEST_NAME_PX = 60
_WIDEST_NAME_PX = 170
_LEAST_PX = 130
"""Width of a plot: three and the list of charts fit beside the plan in a window of 1000 pixels."""


class _BottomAxis(pg.AxisItem):
    """An axis whose numbers do not touch: where the plot is narrow, fewer are written, at equal distances."""

    _coarsest = math.inf

    def tickSpacing(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, float]]:  # noqa: N802, N803
        """The distances of ticks, the largest first."""
        levels: list[tuple[float, float]] = super().tickSpacing(minVal, maxVal, size)
        self._coarsest = levels[0][0] if levels else math.inf
        return levels

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str | None]:  # noqa: N802
        """The number at each tick; None where it is left out."""
        texts: list[str | None] = super().tickStrings(values, scale, spacing)
        if self.logMode or not texts:
            return texts
        metrics = QFontMetrics(self.font())
        widest = max(metrics.horizontalAdvance(text or "") for text in texts) + TIGHT
        between = spacing * self.width() / (self.range[1] - self.range[0])
        step = max(1, math.ceil(widest / between))
        if step > 1 and spacing < self._coarsest:  # every second of 0.1 does not go with the 0.5 of the coarser ticks
            return [None] * len(texts)
        return [text if round(value / spacing) % step == 0 else None for value, text in zip(values, texts, strict=True)]


class Chart(QWidget):
    """One plot under its title. Whatever depends on pixels is arranged again when the size changes."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = ElidedLabel(title)
        self.title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        # A menu that is made and then switched off costs a third more.
        self.widget = pg.PlotWidget(enableMenu=False, axisItems={"bottom": _BottomAxis("bottom")})
        self.widget.setAccessibleName(title)
        self.widget.hideButtons()
        self.plot: pg.PlotItem = self.widget.getPlotItem()
        self.plot.getViewBox().setMouseEnabled(x=False, y=False)
        self.plot.getViewBox().sigResized.connect(lambda _: self.arrange())
        for side in ("bottom", "left"):
            self.plot.getAxis(side).enableAutoSIPrefix(False)
        self._top = 1.0
        self._value_px = 0
        self._row_names: Sequence[str] = ()
        self._names: list[tuple[pg.TextItem, float, float]] = []
        self._include: tuple[Sequence[float], Sequence[float]] = ((), ())
        self.reads: Callable[[float, float], str] = lambda x, y: ""  # noqa: ARG005 - nothing to read by default
        """What the place under the mouse stands for, in words; empty if there is nothing."""
        self._line = pg.InfiniteLine(angle=90)
        self._reading = QLabel(self.widget, textFormat=Qt.TextFormat.PlainText)
        self._reading.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._reading.hide()
        self.widget.scene().sigMouseMoved.connect(self._hover)
        self.setMinimumWidth(_LEAST_PX)
        self.setLayout(column(self.title, self.widget, gap=HAIR, margin=(TIGHT, GAP, TIGHT, TIGHT)))

    def start(self, title: str, colours: Colours, *, y_grid: bool = False) -> pg.PlotItem:
        """Clear the plot and give it another title and theme."""
        self.title.setText(title)
        self.widget.setAccessibleName(title)
        self.plot.disableAutoRange()  # every chart sets its ranges; else each item that is added would
        self.plot.clear()
        self._names = []
        self._include = ((), ())
        self._value_px = 0
        self._row_names = ()
        self.reads = lambda x, y: ""  # noqa: ARG005 - until the chart says what can be read
        self._line.setPen(pg.mkPen(colours.control))
        self.plot.addItem(self._line, ignoreBounds=True)
        self._line.hide()
        self._reading.hide()
        self._reading.setStyleSheet(
            f"background: {colours.raised}; color: {colours.text};"
            f" border: 1px solid {colours.control}; padding: 3px 6px"
        )
        self.plot.showGrid(x=True, y=y_grid, alpha=0.15)
        self.widget.setBackground(colours.surface)
        for side in ("bottom", "left"):
            axis = self.plot.getAxis(side)
            axis.setPen(pg.mkPen(colours.border))
            axis.setTextPen(pg.mkPen(colours.text_dim))
            axis.setZValue(-1000)
        return self.plot

    def _hover(self, place: QPointF) -> None:
        """Read the value under the mouse: a line through it, and its words beside it."""
        at = self.plot.vb.mapSceneToView(place)
        is_inside = self.plot.vb.sceneBoundingRect().contains(place) and self.widget.underMouse()
        words = self.reads(at.x(), at.y()) if is_inside else ""
        self._line.setVisible(bool(words))
        self._line.setValue(at.x())
        self._reading.setVisible(bool(words))
        if words:
            self._reading.setText(words)
            self._reading.adjustSize()
            corner = self.widget.mapFromScene(place) + QPoint(14, 14)
            room = self.widget.size() - self._reading.size()
            self._reading.move(max(0, min(corner.x(), room.width())), max(0, min(corner.y(), room.height())))

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """The mouse is gone: nothing is read."""
        super().leaveEvent(event)
        self._line.hide()
        self._reading.hide()

    def write(
        self,
        text: str,
        x: float,
        y: float,
        *,
        colour: str,
        anchor: tuple[float, float] = (0, 0),
        angle: float = 0,
        fill: str | None = None,
    ) -> pg.TextItem:
        """Write into the plot, in front of points and lines.

        Args:
            text: One line.
            x: In the unit of the plot.
            y: The same.
            colour: Of the letters.
            anchor: The place of the text that lies at x and y; (0, 0) is its upper left.
            angle: In degrees.
            fill: Colour behind the letters, for a text that points may lie behind.
        """
        item = pg.TextItem(text, color=colour, anchor=anchor, angle=angle, fill=fill)
        item.setZValue(1)
        item.setPos(x, y)
        self.plot.addItem(item)
        return item

    def describe(self, words: str) -> None:
        """Describe the plot for screen readers."""
        self.widget.setAccessibleDescription(words)

    def name_rows(self, names: Sequence[str]) -> None:
        """Names of bars at the left, the first at the top."""
        self._row_names = names
        self.plot.setYRange(-0.7, max(1, len(names)) - 0.3, padding=0)
        self.arrange()

    def row_name(self, y: float) -> str:
        """Name of the bar at a place; empty if it has none."""
        at = len(self._row_names) - 1 - round(y)
        return self._row_names[at] if 0 <= at < len(self._row_names) else ""

    def figures(self) -> Iterator[tuple[object, ...]]:
        """Name, x, y and note of every bar, point and line. The value of a bar is its x."""
        for item in self.plot.items:
            note = item.toolTip().replace("\n", ", ")
            if isinstance(item, pg.BarGraphItem):
                for x, y, width in zip(*(item.opts[key] for key in ("x0", "y", "width")), strict=True):
                    yield self.row_name(y), float(width), float(x), note
            elif isinstance(item, pg.ScatterPlotItem):
                for point in item.points():
                    yield point.data(), float(point.pos().x()), float(point.pos().y()), note
            elif isinstance(item, pg.PlotDataItem):
                xs, ys = item.getData()
                for x, y in zip(() if xs is None else xs, () if ys is None else ys, strict=True):
                    yield "", float(x), float(y), note

    def keep_room(self, top: float, text: str) -> None:
        """Set the axis so that bars up to ``top`` fit, with a text as long as this one behind them."""
        self._top = top or 1.0
        self._value_px = self.fontMetrics().horizontalAdvance(text) + 18
        self.arrange()

    def keep_names(
        self,
        names: list[tuple[pg.TextItem, float, float]],
        *,
        include: tuple[Sequence[float], Sequence[float]] = ((), ()),
    ) -> None:
        """Place names at their points; one that has no place without an overlap is left out, its point has a tool tip.

        Values in ``include`` (x, y) stay visible too.
        """
        self._names = sorted(names, key=lambda name: name[1])
        self._include = include
        self.arrange()

    def arrange(self) -> None:
        """Fit everything to the present size of the plot."""
        width = max(40.0, self.plot.getViewBox().width())
        if self._value_px:
            self.plot.setXRange(0, self._top * width / max(8.0, width - self._value_px), padding=0)
        if self._row_names:
            self._arrange_rows()
        if self._names:
            self._arrange_names(width)

    def _arrange_rows(self) -> None:
        """Names as wide as they need, at most two fifths of the chart."""
        axis, metrics = self.plot.getAxis("left"), self.fontMetrics()
        widest = max(_NARROWEST_NAME_PX, min(_WIDEST_NAME_PX, int(self.width() * 0.4)))
        names = [metrics.elidedText(name, Qt.TextElideMode.ElideRight, widest) for name in self._row_names]
        axis.setTicks([list(enumerate(reversed(names)))])
        axis.setWidth(max(metrics.horizontalAdvance(name) for name in names) + 14)

    def _arrange_names(self, width: float) -> None:
        xs = [*(x for _, x, _ in self._names), *self._include[0]]
        ys = [*(y for _, _, y in self._names), *self._include[1]]
        across = max(xs) - min(xs) or max(xs) or 1.0
        along = max(ys) - min(ys) or abs(max(ys)) * 0.05 or 1.0
        low, high = min(xs) - 0.25 * across, max(xs) + 0.25 * across
        low = max(0.0, low) if min(xs) >= 0 else low
        self.plot.setXRange(low, high, padding=0)
        height = self.plot.getViewBox().height()
        bottom, top = min(ys) - 0.45 * along, max(ys) + 0.45 * along
        named = [y for _, _, y in self._names]
        name = _NAME_ANCHORS[0] * self._names[0][0].textItem.boundingRect().height() / max(height, 40.0)
        for _ in range(2):  # room for a name below the lowest point and above the highest; more room takes more
            need = name * (top - bottom)
            bottom, top = min(bottom, min(named) - need), max(top, max(named) + need)
        self.plot.setYRange(bottom, top, padding=0)
        plot = QRectF(0, 0, width, height)
        taken: list[QRectF] = []
        for item, x, y in self._names:
            room = item.textItem.boundingRect()
            centre, down = (x - low) / (high - low) * width, (top - y) / (top - bottom) * height
            left = max(0.0, min(centre - room.width() / 2, width - room.width()))
            places = ((each, QRectF(QPointF(left, down - each * room.height()), room.size())) for each in _NAME_ANCHORS)
            free = [one for one in places if plot.contains(_letters(one[1])) and not any(map(one[1].intersects, taken))]
            item.setVisible(bool(free))
            if free:
                anchor, place = free[0]
                # An anchor beside the middle keeps the name inside the plot.
                item.setAnchor(((centre - left) / room.width(), anchor))
                taken.append(_letters(place))


def _letters(place: QRectF) -> QRectF:
    """A name without the empty margin above and below it."""
    return place.adjusted(0, _NAME_MARGIN_PX, 0, -_NAME_MARGIN_PX)


class ChartView(QWidget):
    """One entry of the charts panel."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__()
        self.session = session
        self.colours = colours

    def make_parts(self) -> Iterator[None]:
        """Make what `__init__` left out, a part until each ``yield``, as `Panel.make_parts`."""
        yield from ()

    def missing(self, document: Document) -> str:
        """Why there is nothing to draw, in one sentence; empty if there is something, or something to do."""
        del document
        return ""

    def update_from(self, document: Document) -> None:
        """Draw the document. Called only while the chart is visible, and only if something changed."""
        raise NotImplementedError

    def restyle(self, colours: Colours) -> None:
        """Use another theme; `update_from` follows."""
        self.colours = colours

    def figures(self) -> Iterator[Sequence[object]]:
        """What is drawn, as the rows of a table below their names."""
        yield "plot", "name", "x", "y", "note"
        for chart in self.findChildren(Chart):
            yield from ((chart.title.text(), *row) for row in chart.figures())

    def draw_again(self) -> None:
        """Draw the present document, after another choice in the chart itself."""
        self.update_from(self.session.document)


class PlotView(ChartView):
    """An entry that is one plot."""

    def show_plot(self, title: str, *tools: QLayout) -> None:
        """Lay the plot out, below lines of tools."""
        self.chart = Chart(title)
        self.chart.widget.scene().sigMouseClicked.connect(self.clicked)
        self.setLayout(column(*tools, self.chart, gap=0, stretch=len(tools)))

    def clicked(self, event: object) -> None:
        """Select the op under the mouse."""
        found = under_mouse(self.chart.plot, event)
        if isinstance(found, str):
            self.session.view.select([found])


def add_spots(
    plot: pg.PlotItem,
    places: Sequence[tuple[float, float]],
    *,
    op_ids: Sequence[str],
    fills: Sequence[str],
    sizes: Sequence[float],
    selected: frozenset[str],
    colours: Colours,
    tip: Callable[[str], str],
) -> None:
    """A point per op, all in one item; the selected ones are ringed.

    ``places``: x and y in the plot's own units. ``sizes`` are in px. ``tip``: id -> tooltip.
    """
    brushes = {fill: pg.mkBrush(fill) for fill in set(fills)}
    pens = (pg.mkPen(colours.border, width=1), pg.mkPen(colours.accent, width=3))
    points = pg.ScatterPlotItem(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        size=list(sizes),
        brush=[brushes[fill] for fill in fills],
        pen=[pens[op_id in selected] for op_id in op_ids],
        data=list(op_ids),
        hoverable=True,
        tip=lambda x, y, data: tip(data),  # noqa: ARG005 - the names are pyqtgraph's
    )
    plot.addItem(points)


def under_mouse(item: pg.PlotItem, event: object) -> object:
    """The data of the point under the mouse; None if there is none."""
    for each in item.items:
        if isinstance(each, pg.ScatterPlotItem):
            under = each.pointsAt(each.mapFromScene(event.scenePos()))  # type: ignore[attr-defined]
            if len(under):
                return under[0].data()
    return None
