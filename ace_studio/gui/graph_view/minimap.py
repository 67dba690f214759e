"""The map: the whole graph in a corner, with the visible part marked; a click goes there."""

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from ace_studio.gui.graph_view.camera import Camera
from ace_studio.gui.graph_view.canvas import GraphCanvas
from ace_studio.gui.graph_view.primitives import draw_rects
from ace_studio.gui.style import tr

MAP_SIZE = QSize(188, 136)
_MARGIN = 8.0


class Minimap(QWidget):
    """A map of a canvas. The picture is drawn once per scene; only the mark moves."""

    def __init__(self, canvas: GraphCanvas) -> None:
        super().__init__(canvas, accessibleName=tr("Map of the graph"))
        self._canvas = canvas
        self._pixmap = QPixmap()
        self._key: tuple[object, ...] = ()
        self.setFixedSize(MAP_SIZE)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(tr("Map: click or drag to go there"))
        canvas.camera_moved.connect(self.update)
        canvas.scene_changed.connect(self.update)

    def _own_camera(self) -> Camera:
        camera = Camera()
        if self._canvas.picture is not None:
            scene = self._canvas.picture.scene
            room_x, room_y = self.width() - 2 * _MARGIN, self.height() - 2 * _MARGIN
            wide, tall = max(scene.total_width, 1.0), max(scene.total_height, 1.0)
            camera.scale = min(room_x / wide, room_y / tall)
            camera.dx = (self.width() - wide * camera.scale) / 2
            camera.dy = (self.height() - tall * camera.scale) / 2
        return camera

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the map and the mark."""
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        colours = self._canvas.colours
        plate = QColor(colours.surface)
        plate.setAlpha(236)
        painter.setPen(QPen(QColor(colours.border), 1))
        painter.setBrush(plate)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 7, 7)
        picture = self._canvas.picture
        if picture is not None and len(picture.table):
            key = (id(picture), picture.version, colours, self.devicePixelRatioF())
            if key != self._key:
                self._pixmap, self._key = self._draw_map(), key
            painter.drawPixmap(0, 0, self._pixmap)
            self._draw_mark(painter)
        painter.end()

    def _draw_map(self) -> QPixmap:
        ratio = self.devicePixelRatioF()
        pixmap = QPixmap(self.size() * ratio)
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        picture, colours = self._canvas.picture, self._canvas.colours
        if picture is None:
            return pixmap
        painter = QPainter(pixmap)
        camera, scene = self._own_camera(), picture.scene

        def rects(nodes: np.ndarray) -> np.ndarray:
            x, y = scene.x[nodes] * camera.scale + camera.dx, scene.y[nodes] * camera.scale + camera.dy
            wide = np.maximum(scene.width[nodes] * camera.scale, 1.0)
            tall = np.maximum(scene.height[nodes] * camera.scale, 1.0)
            return np.column_stack([x, y, wide, tall])

        painter.setPen(Qt.PenStyle.NoPen)
        for depth in np.unique(picture.tree.depth[scene.frames]):
            painter.setBrush(QColor(colours.frames[min(int(depth), len(colours.frames) - 1)]))
            draw_rects(painter, rects(scene.frames[picture.tree.depth[scene.frames] == depth]))
        category = np.full(picture.tree.node_count, -1)
        category[: picture.tree.root] = picture.category
        for kind in np.unique(category[scene.boxes]):
            painter.setBrush(QColor(picture.colouring.colours[kind] if kind >= 0 else colours.block_border))
            draw_rects(painter, rects(scene.boxes[category[scene.boxes] == kind]))
        painter.setBrush(QColor(colours.seam))
        for _, left, right, middle in picture.seam_spans.tolist():
            start, y = camera.to_screen(left, middle)
            painter.drawRect(QRectF(start, y - 0.8, (right - left) * camera.scale, 1.6))
        painter.end()
        return pixmap

    def _draw_mark(self, painter: QPainter) -> None:
        canvas, own = self._canvas, self._own_camera()
        left, top = own.to_screen(*canvas.camera.to_scene(0, 0))
        right, bottom = own.to_screen(*canvas.camera.to_scene(canvas.width(), canvas.height()))
        room = QRectF(self.rect()).adjusted(3, 3, -3, -3)
        mark = QRectF(left, top, max(right - left, 5.0), max(bottom - top, 5.0)).intersected(room)
        fill = QColor(canvas.colours.accent)
        fill.setAlpha(34)
        painter.setBrush(fill)
        painter.setPen(QPen(QColor(canvas.colours.accent), 1.4))
        painter.drawRoundedRect(mark, 2, 2)

    def _go(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            x, y = self._own_camera().to_scene(event.position().x(), event.position().y())
            self._canvas.camera.center_on(x, y, width=self._canvas.width(), height=self._canvas.height())
            self._canvas.pan(0.0, 0.0)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Go there."""
        self._go(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Follow the pointer."""
        self._go(event)
