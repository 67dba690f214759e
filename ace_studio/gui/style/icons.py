"""Icons: strokes on a 24 x 24 grid, drawn in the colour of the theme at any scale."""

import msgspec
from PySide6.QtCore import QByteArray, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from ace_studio.records.places import resource_folder

_STROKES = msgspec.json.decode((resource_folder() / "icons" / "strokes.json").read_bytes(), type=dict[str, str])
"""Name -> path of an SVG."""
_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="{path}" fill="none" stroke="{colour}" '
    'stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round"/></svg>'
)


class _StrokeEngine(QIconEngine):
    """Paints one icon sharp at any size and pixel ratio."""

    def __init__(self, name: str, colour: str, faded: str) -> None:
        super().__init__()
        self._name, self._stroke, self._colours = name, _STROKES[name], (colour, faded)
        self._renderers: dict[str, QSvgRenderer] = {}
        """By colour; made when it is first painted, because most icons are in menus that nobody opens."""

    def clone(self) -> QIconEngine:
        return _StrokeEngine(self._name, *self._colours)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        del state
        colour = self._colours[mode == QIcon.Mode.Disabled]
        if colour not in self._renderers:
            svg = _SVG.format(path=self._stroke, colour=colour)
            self._renderers[colour] = QSvgRenderer(QByteArray(svg.encode()))
        self._renderers[colour].render(painter, QRectF(rect))

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        pixmap = QPixmap(size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        self.paint(painter, pixmap.rect(), mode, state)
        painter.end()
        return pixmap


def stroke_icon(name: str, colour: str, faded: str) -> QIcon:
    """An icon in a colour, and in a faded one where it is disabled. Raises: KeyError if there is no such icon."""
    return QIcon(_StrokeEngine(name, colour, faded))


def stroke_pixmap(name: str, colour: str, *, size: int, pixel_ratio: float) -> QPixmap:
    """An icon as a picture of ``size`` logical pixels."""
    pixmap = _StrokeEngine(name, colour, colour).pixmap(
        QSize(round(size * pixel_ratio), round(size * pixel_ratio)), QIcon.Mode.Normal, QIcon.State.Off
    )
    pixmap.setDevicePixelRatio(pixel_ratio)
    return pixmap
