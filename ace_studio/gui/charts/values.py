"""The values of one op or of its weights: float, compressed and the difference as pictures, and a histogram."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QFileDialog, QGridLayout, QSizePolicy

from ace_studio.gui.charts.chart import Chart, ChartView
from ace_studio.gui.ops.details import tensor_lines
from ace_studio.gui.style import Colours, number, tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import CLOSE, GAP, HAIR, column, row
from ace_studio.gui.widgets.small import ElidedLabel, button, fill_combo, show_words
from ace_studio.gui.words.formatting import plural, shape_text
from ace_studio.records.values import BINS, TensorValues, ValuePicture
from ace_studio.session.document import Document
from ace_studio.session.session import Session

_TITLES = (tr("Float"), tr("Compressed"), tr("Difference"))

_LEAST_PX = 96
"""Width of a plot: four take no more than the three of other charts, so that the choices beside them keep theirs."""


class ValuesChart(ChartView):
    """What *Show values* found. The mouse over a picture or the histogram reads a value."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.tensor = ComboBox(tr("Tensor"), chosen=self.draw_again)
        self.example = ComboBox(tr("Example"), chosen=lambda: self._ask(example=self.example.currentIndex()))
        for combo in (self.tensor, self.example):
            combo.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.save_button = button(
            tr("Save values…"), self._save, tip=tr("The whole tensors as a file for numpy (.npz)")
        )
        self._about, self._notes = ElidedLabel(), ElidedLabel(role="dim")
        tools = row(self.tensor, self.example, None, self.save_button)
        self.pictures = tuple(Chart(title) for title in _TITLES)
        for chart in self.pictures:
            chart.plot.hideAxis("left")
            chart.plot.hideAxis("bottom")
            chart.plot.invertY()
            chart.plot.setAspectLocked()
        self.histogram = Chart(tr("Histogram"))
        self._edges = np.zeros(0)
        self._bars: list[Sequence[int]] = []
        """Elements in each bar of the histogram, in float and compressed."""
        plots = QGridLayout()
        for at, chart in enumerate((*self.pictures, self.histogram)):
            chart.setMinimumWidth(_LEAST_PX)
            plots.addWidget(chart, 0, at)
            plots.setColumnStretch(at, 1)
        top = column(tools, self._about, self._notes, gap=HAIR, margin=(GAP, CLOSE, GAP, 0))
        self.setLayout(column(top, plots, gap=0, stretch=1))

    def missing(self, document: Document) -> str:
        """Needs an op that was asked about."""
        return "" if document.values is not None else tr("Select an op, and press Show values in Details (Alt+D).")

    def update_from(self, document: Document) -> None:
        """Draw the chosen tensor."""
        values = document.values
        if values is None:
            return
        offered = [(f"{one.name}  {shape_text(one.shape)}", one.name) for one in values.tensors]
        names = [name for _, name in offered]
        chosen = self.tensor.currentData()
        fill_combo(self.tensor, offered, chosen if chosen in names else names[0])
        examples = [
            (tr("example {at} of {examples}", at=at + 1, examples=values.examples), str(at))
            for at in range(values.examples)
        ]
        fill_combo(self.example, examples, str(values.example))
        for each in (self.example, self.save_button):
            each.setEnabled(not document.activity.is_working)
        found = values.tensors[names.index(self.tensor.currentData())]
        told = tensor_lines(found)
        told.pop(tr("first values"), "")
        tiles = found.tiles
        drawn = (
            tr("{count} of {channels} drawn", count=tiles.count, channels=plural(tiles.total, "channel"))
            if tiles.count < tiles.total
            else ""
        )
        words = [values.op_id, values.precision, *(f"{name} {value}" for name, value in told.items() if value), drawn]
        self._about.setText("  ·  ".join(one for one in words if one))
        show_words(self._notes, "  ·  ".join(values.notes))
        for at, chart in enumerate(self.pictures):
            chart.setVisible(at < len(found.pictures))
            if at < len(found.pictures):
                self._draw_picture(chart, _TITLES[at], found, at)
        self._draw_histogram(found)

    def _draw_picture(self, chart: Chart, title: str, found: TensorValues, at: int) -> None:
        tiles, picture = found.tiles, found.pictures[at]
        plot = chart.start(f"{title} {number(picture.low, '.2g')} … {number(picture.high, '.2g')}", self.colours)
        plot.showGrid(x=False, y=False)
        width = tiles.across * tiles.width
        levels = np.frombuffer(picture.levels, np.uint8)
        if not levels.size:
            return
        image = pg.ImageItem(levels.reshape(-1, width), axisOrder="row-major", levels=(0, 255))
        image.setLookupTable(self._lookup(is_difference=at == len(_TITLES) - 1))
        plot.addItem(image)
        height = levels.size // width
        # Both at once: with the ratio of sides locked, the second of two calls would crop what the first one set.
        plot.setRange(xRange=(0, width), yRange=(0, height), padding=0.01)
        chart.reads = lambda x, y: read_cell(found, picture, int(x), int(y)) if 0 <= x < width and y >= 0 else ""
        chart.describe(tr("{title} of {name}, {shape}", title=title, name=found.name, shape=shape_text(found.shape)))

    def _lookup(self, *, is_difference: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.ubyte]]:
        """Level -> colour; level 0 is the ground."""
        ends = (self.colours.series[0], self.colours.surface, self.colours.series[1])
        stops = ends if is_difference else self.colours.scale
        ramp = pg.ColorMap(np.linspace(0, 1, len(stops)), list(stops)).getLookupTable(nPts=255)
        ground = pg.mkColor(self.colours.surface).getRgb()[:3]
        return np.vstack([np.array([ground], np.ubyte), ramp[:, :3].astype(np.ubyte)])

    def _draw_histogram(self, found: TensorValues) -> None:
        plot = self.histogram.start(tr("Elements by value"), self.colours, y_grid=True)
        self._bars = [one.counts for one in (found.original, found.compressed) if one is not None]
        self._edges = edges = np.linspace(found.low, found.high if found.high > found.low else found.low + 1, BINS + 1)
        highest = 1
        for at, one in enumerate((found.original, found.compressed)):
            if one is not None:
                fill = None if at else pg.mkColor(self.colours.series[0] + "70")
                pen = pg.mkPen(self.colours.series[at], width=1.5)
                line = pg.PlotDataItem(edges, one.counts, stepMode="center", pen=pen, fillLevel=0, brush=fill)
                line.setToolTip(_TITLES[at])
                plot.addItem(line)
                highest = max(highest, *one.counts)
        plot.setXRange(edges[0], edges[-1], padding=0.02)
        plot.setYRange(0, 1.06 * highest, padding=0)
        self.histogram.reads = lambda x, _: _read_bar(found, edges, x)

    def figures(self) -> Iterator[Sequence[object]]:
        """The bars of the histogram."""
        yield "from", "to", *_TITLES[: len(self._bars)]
        yield from zip(self._edges[:-1], self._edges[1:], *self._bars, strict=True)

    def _ask(self, *, example: int, save: str = "") -> None:
        values = self.session.document.values
        if values is not None:
            self.session.jobs.show_values(values.op_id, example=example, save=save)

    def _save(self) -> None:
        values = self.session.document.values
        name = str(Path(self.session.document.saving_folder) / f"{values.op_id if values else 'values'}.npz")
        path, _ = QFileDialog.getSaveFileName(self, tr("Save values"), name, tr("numpy (*.npz)"))
        if path and values is not None:
            self._ask(example=values.example, save=path)


def read_cell(found: TensorValues, picture: ValuePicture, x: int, y: int) -> str:
    """Which element a cell of a picture is, and its value to one part in 254 of the scale."""
    tiles = found.tiles
    place = y * tiles.across * tiles.width + x
    level = picture.levels[place] if place < len(picture.levels) else 0
    if not level:
        return ""
    value = picture.low + (level - 1) / 254 * (picture.high - picture.low)
    matrix = y // tiles.height * tiles.across + x // tiles.width
    at_row = y % tiles.height * tiles.rows // tiles.height
    at_column = x % tiles.width * tiles.columns // tiles.width
    where = f"[{at_row}, {at_column}]"
    channel = tr("channel {matrix} ", matrix=matrix) if tiles.total > 1 else ""
    return f"{channel}{where}\n{number(value, '.3g')}"


def _read_bar(found: TensorValues, edges: np.ndarray[tuple[int, ...], np.dtype[np.float64]], x: float) -> str:
    at = int(np.searchsorted(edges, x)) - 1
    if not 0 <= at < BINS:
        return ""
    sides = [(one, name) for one, name in zip((found.original, found.compressed), _TITLES, strict=False) if one]
    counts = ", ".join(f"{name.lower()} {number(one.counts[at], ',')}" for one, name in sides)
    return f"{number(edges[at], '.3g')} … {number(edges[at + 1], '.3g')}: {counts}"
