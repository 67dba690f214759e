"""A chart as a file: a picture (PNG, SVG), or the figures in it (CSV)."""

from pathlib import Path

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtSvg import QSvgGenerator

from ace_studio.gui.charts.chart import ChartView
from ace_studio.gui.style import tr
from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.safe_file import written_beside
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
    with explained(ErrorCode.NOT_FOUND, what, remedy=tr("Choose another folder")), written_beside(path) as private:
        makers[path.suffix](view, private)
        if not private.is_file():
            raise OSError(tr("the file could not be written"))


def _csv(view: ChartView, path: Path) -> None:
    path.write_text(spreadsheet_text(view.figures()), encoding="utf-8", newline="")


def _png(view: ChartView, path: Path) -> None:
    picture = QPixmap(view.size() * _SCALE)
    picture.setDevicePixelRatio(_SCALE)
    view.render(picture)
    picture.save(str(path), "PNG")


def _svg(view: ChartView, path: Path) -> None:
    made = QSvgGenerator()
    made.setSize(view.size())
    made.setViewBox(QRect(QPoint(0, 0), view.size()))
    made.setFileName(str(path))
    painter = QPainter(made)
    view.render(painter, QPoint(0, 0))
    painter.end()
