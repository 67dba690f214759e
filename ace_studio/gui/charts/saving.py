"""A chart as a file: a picture (PNG, SVG), or the figures in it (CSV)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRect
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtSvg import QSvgGenerator

from ace_studio.gui.charts.chart import ChartView
from ace_studio.gui.style import tr
from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.safe_file import write_atomically
from ace_studio.records.spreadsheet import spreadsheet_text

SUFFIXES = (".png", ".svg", ".csv")
_SCALE = 2
"""Pixels of a PNG per pixel of the screen."""


def save_chart(view: ChartView, path: Path) -> None:
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


def _csv(view: ChartView) -> bytes:
    return spreadsheet_text(view.figures()).encode()


def _png(view: ChartView) -> bytes:
    picture = QPixmap(view.size() * _SCALE)
    picture.setDevicePixelRatio(_SCALE)
    view.render(picture)
    with _buffer() as buffer:
        picture.save(buffer, "PNG")
        return bytes(buffer.data().data())


def _svg(view: ChartView) -> bytes:
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
