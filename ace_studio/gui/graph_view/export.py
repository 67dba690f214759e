"""The picture as a file: SVG and PDF for documents, PNG for everything else."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QMarginsF, QRectF, QSize, QSizeF
from PySide6.QtGui import QColor, QImage, QPageLayout, QPageSize, QPainter, QPdfWriter
from PySide6.QtSvg import QSvgGenerator

from ace_studio.gui.graph_view.camera import Camera
from ace_studio.gui.graph_view.painting import paint_scene
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.stage import Stage
from ace_studio.gui.graph_view.texts import TextCache
from ace_studio.gui.style import Colours, tr
from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.safe_file import written_beside

BORDER = 24.0
MAX_PNG_PIXELS = 16_000
"""Longest side of a PNG."""
MAX_PDF_POINTS = 14_400.0
"""Longest side of a PDF page that readers accept."""


def png_size(picture: Picture, *, scale: float = 2.0) -> QSize:
    """Width and height of the PNG in pixels, before it is made."""
    wide, tall = _extent(picture)
    scale = min(scale, MAX_PNG_PIXELS / max(wide, tall))
    return QSize(max(1, int(wide * scale)), max(1, int(tall * scale)))


def export_picture(picture: Picture, path: Path, *, colours: Colours) -> None:
    """Write the open picture into a file; the ending decides the format.

    Raises:
        AceError: If the ending is unknown or the file cannot be written.
    """
    write = WRITERS.get(path.suffix.lower())
    if write is None:
        raise AceError.of(
            ErrorCode.USAGE,
            tr("'{name}' has no ending that the graph can be saved as", name=path.name),
            why=tr("the ending decides the format"),
            remedy=tr("use one of {names}", names=", ".join(WRITERS)),
            where=str(path),
        )
    what = tr("the graph could not be saved as '{name}'", name=path.name)
    remedy = tr("check that the folder exists, that you may write there and that the disk has room")
    with explained(ErrorCode.NOT_FOUND, what, remedy=remedy, where=path), written_beside(path) as private:
        if not write(picture, private, colours):
            raise OSError(tr("the file could not be written"))


def _extent(picture: Picture) -> tuple[float, float]:
    return picture.scene.total_width + 2 * BORDER, picture.scene.total_height + 2 * BORDER


def _paint(painter: QPainter, picture: Picture, colours: Colours, *, scale: float) -> None:
    wide, tall = _extent(picture)
    painter.fillRect(QRectF(0, 0, wide * scale, tall * scale), QColor(colours.window))
    paint_scene(
        Stage(
            painter=painter,
            picture=picture,
            camera=Camera(scale=scale, dx=BORDER * scale, dy=BORDER * scale),
            colours=colours,
            texts=TextCache(),
            width=wide * scale,
            height=tall * scale,
            culls=False,
        )
    )


def _write_png(picture: Picture, path: Path, colours: Colours) -> bool:
    size = png_size(picture)
    image = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
    painter = QPainter(image)
    _paint(painter, picture, colours, scale=size.width() / _extent(picture)[0])
    painter.end()
    return image.save(str(path), "PNG")  # type: ignore[call-overload]


def _write_svg(picture: Picture, path: Path, colours: Colours) -> bool:
    wide, tall = _extent(picture)
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(QSize(int(wide), int(tall)))
    generator.setViewBox(QRectF(0, 0, wide, tall))
    generator.setTitle(picture.table.name or tr("graph"))
    painter = QPainter()
    if not painter.begin(generator):
        return False
    _paint(painter, picture, colours, scale=1.0)
    return painter.end()


def _write_pdf(picture: Picture, path: Path, colours: Colours) -> bool:
    wide, tall = _extent(picture)
    shrink = min(1.0, MAX_PDF_POINTS / max(wide, tall))
    writer = QPdfWriter(str(path))
    writer.setResolution(72)
    page = QPageSize(
        QSizeF(wide * shrink, tall * shrink), QPageSize.Unit.Point, "", QPageSize.SizeMatchPolicy.ExactMatch
    )
    writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, QMarginsF()))
    painter = QPainter()
    if not painter.begin(writer):
        return False
    painter.scale(shrink, shrink)
    _paint(painter, picture, colours, scale=1.0)
    return painter.end()


WRITERS: dict[str, Callable[[Picture, Path, Colours], bool]] = {
    ".svg": _write_svg,
    ".pdf": _write_pdf,
    ".png": _write_png,
}
"""File ending -> writer."""
