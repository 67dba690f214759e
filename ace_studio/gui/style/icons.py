"""Icons: strokes on a 24 x 24 grid, drawn in the colour of the theme at any scale."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

_STROKES: dict[str, str] = {
    "open": "M3 7V5.5A1.5 1.5 0 0 1 4.5 4H9l2.5 2.5H19A1.5 1.5 0 0 1 20.5 8v2 M3 7v11.5h15.5L21.5 10H6.5L3 18.5",
    "save": "M4 4h12.5L20 7.5V20H4z M8 4v5h7V4 M7.5 20v-6.5h9V20",
    "undo": "M8.5 5L4 9.5 8.5 14 M4 9.5h10a5.25 5.25 0 0 1 0 10.5H9",
    "redo": "M15.5 5L20 9.5 15.5 14 M20 9.5H10a5.25 5.25 0 0 0 0 10.5h5",
    "trace": "M5 5h5v5H5z M14 14h5v5h-5z M10 7.5h3.5a3 3 0 0 1 3 3V14",
    "run": "M7 4.5v15L19.5 12z",
    "cancel": "M6.5 6.5h11v11h-11z",
    "settings": "M4 7h9 M17 7h3 M4 17h3 M11 17h9 M15 5a2 2 0 1 1 0 4 2 2 0 0 1 0-4z M9 15a2 2 0 1 1 0 4 2 2 0 0 1 0-4z",
    "help": "M9 9.2a3.1 3.1 0 1 1 4.4 2.8c-.9.45-1.4 1-1.4 2v.5 M12 17.6v.2 M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18z",
    "palette": "M4 6h16 M4 12h10 M4 18h7 M16.5 15.5l3 3-3 3",
    "drop": "M12 4v11 M7.5 10.5L12 15l4.5-4.5 M4 16v4h16v-4",
    "warn": "M12 4L2.8 20h18.4z M12 10v4.5 M12 17.2v.2",
    "bad": "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18z M12 7.5v5.5 M12 16.2v.2",
    "info": "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18z M12 11v5.5 M12 7.5v.2",
    "good": "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18z M8 12.3l2.8 2.8L16 9.5",
    "clock": "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18z M12 7v5.2l3.4 2",
    "skip": "M7 12h10",
    "close": "M6.5 6.5l11 11 M17.5 6.5l-11 11",
    "back": "M11 6l-6 6 6 6 M5 12h14",
    "forward": "M13 6l6 6-6 6 M5 12h14",
    "graph": "M4 4h6v5H4z M14 9.5h6v5h-6z M4 15h6v5H4z M10 6.5h2.5v11H10 M12.5 12H14",
    "file": "M6 3h8.5L19 7.5V21H6z M14 3v5h5",
    "shield": "M12 3l7.5 3v5.5c0 4.5-3 7.8-7.5 9.5-4.5-1.7-7.5-5-7.5-9.5V6z",
    "export": "M12 15V4 M7.5 8.5L12 4l4.5 4.5 M4 14v6h16v-6",
    "chart": "M4 4v16h16 M8 16v-4 M12.5 16V8 M17 16v-6",
    "bookmark": "M7 4h10v16l-5-4-5 4z",
    "window": "M4 9h11v11H4z M9 9V4h11v11h-5",
    "table": "M4 5h16v14H4z M4 10h16 M4 14.5h16 M10 10v9",
}
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
