"""A chart as a file: a picture (PNG, SVG), or the figures in it (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRect
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from ace_studio.gui.charts.chart import Chart
from ace_studio.gui.style.language import tr
from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.safe_file import write_atomically

SUFFIXES = (".png", ".svg", ".csv")
_SCALE = 2
"""Pixels of a PNG per pixel of the screen."""
_COLUMNS = ("plot", "name", "x", "y", "note")


def save_chart(view: QWidget, path: Path) -> None:
    """Save what a chart shows. Raises: AceError if the ending is unknown or the file cannot be written."""
    makers = {".png": _png, ".svg": _svg, ".csv": _csv}
    if path.suffix not in makers:
        raise AceError.of(
            ErrorCode.USAGE,
            tr("A chart cannot be saved as {name}", name=path.name),
            remedy=tr("Use one of these endings: {names}", names=", ".join(SUFFIXES)),
        )
    what = tr("{name} could not be written", name=path.name)
    with explained(ErrorCode.NOT_FOUND, what, remedy=tr("Choose another folder")):
        write_atomically(path, makers[path.suffix](view))


def _csv(view: QWidget) -> bytes:
    """Every bar, point and line of the chart's plots, a row each. A bar's value is in ``x``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for chart in _charts(view):
        writer.writerows((chart.title.text(), *row) for row in _rows(chart))
    return text.getvalue().encode()


def _charts(view: QWidget) -> list[Chart]:
    return [view] if isinstance(view, Chart) else view.findChildren(Chart)


def _rows(chart: Chart) -> Iterator[tuple[object, ...]]:
    for item in chart.plot.items:
        note = item.toolTip().replace("\n", ", ")
        if isinstance(item, pg.BarGraphItem):
            xs, ys, widths = (np.atleast_1d(item.opts.get(key, 0)) for key in ("x0", "y", "width"))
            for x, y, width in zip(*np.broadcast_arrays(xs, ys, widths), strict=True):
                yield chart.row_name(float(y)), float(width), float(x), note
        elif isinstance(item, pg.ScatterPlotItem):
            for point in item.points():
                yield point.data(), float(point.pos().x()), float(point.pos().y()), note
        elif isinstance(item, pg.PlotDataItem | pg.PlotCurveItem):
            xs, ys = item.getData()
            for x, y in zip(() if xs is None else xs, () if ys is None else ys, strict=True):
                yield "", float(x), float(y), note


def _png(view: QWidget) -> bytes:
    picture = QPixmap(view.size() * _SCALE)
    picture.setDevicePixelRatio(_SCALE)
    view.render(picture)
    with _buffer() as buffer:
        picture.save(buffer, "PNG")
        return bytes(buffer.data().data())


def _svg(view: QWidget) -> bytes:
    made = QSvgGenerator()
    made.setSize(view.size())
    made.setViewBox(QRect(QPoint(0, 0), view.size()))
    with _buffer() as buffer:
        made.setOutputDevice(buffer)
        painter = QPainter(made)
        view.render(painter, QPoint(0, 0))
        painter.end()
        return bytes(buffer.data().data())


@contextmanager
def _buffer() -> Iterator[QBuffer]:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    yield buffer
    buffer.close()
