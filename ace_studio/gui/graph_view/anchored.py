"""A widget that stays beside a node of the graph while the picture moves."""

from PySide6.QtCore import QEvent, QLineF, QObject, QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QWidget

from ace_studio.gui.graph_view.canvas import GraphCanvas

_GAP = 14.0
EDGE = 10


class Anchored(QObject):
    """Keeps a card inside the canvas, below or beside its node, and draws the line between them."""

    def __init__(self, canvas: GraphCanvas, card: QWidget) -> None:
        super().__init__(canvas)
        self._canvas, self._card = canvas, card
        self._row = -1
        self._leader = QLineF()
        card.setParent(canvas)
        canvas.camera_moved.connect(self.place)
        canvas.scene_changed.connect(self.place)
        canvas.installEventFilter(self)
        canvas.painted.connect(self._draw)

    def hold(self, row: int) -> None:
        """Keep the card beside this row; -1 keeps it in the upper right corner."""
        self._row = row
        self.place()

    def place(self) -> None:
        """Move the card to the present place of its node."""
        card, canvas = self._card, self._canvas
        if card.isHidden():
            self._leader = QLineF()
            return
        card.setMaximumSize(max(120, canvas.width() - 2 * EDGE), max(60, canvas.height() - 2 * EDGE))
        card.adjustSize()
        rect = self._node_rect()
        room_x, room_y = canvas.width() - card.width() - EDGE, canvas.height() - card.height() - EDGE
        if rect is None:
            card.move(max(EDGE, room_x), EDGE)
            self._leader = QLineF()
            return
        x, y = rect.right() + _GAP, rect.center().y() - card.height() / 2
        if x > room_x and rect.left() - _GAP - card.width() > EDGE:
            x = rect.left() - _GAP - card.width()
        elif x > room_x:
            x, y = rect.center().x() - card.width() / 2, rect.bottom() + _GAP
        x, y = max(EDGE, min(x, room_x)), max(EDGE, min(y, room_y))
        card.move(round(x), round(y))
        box = QRectF(card.geometry())
        start = QPointF(min(max(box.center().x(), rect.left()), rect.right()), rect.center().y())
        self._leader = QLineF() if box.intersects(rect) else QLineF(start, _nearest(box, start))
        canvas.update()

    def _node_rect(self) -> QRectF | None:
        picture, camera = self._canvas.picture, self._canvas.camera
        if picture is None or not 0 <= self._row < len(picture.table):
            return None
        node, scene = int(picture.scene.stands_for[self._row]), picture.scene
        left, top = camera.to_screen(float(scene.x[node]), float(scene.y[node]))
        return QRectF(left, top, float(scene.width[node]) * camera.scale, float(scene.height[node]) * camera.scale)

    def _draw(self, painter: QPainter) -> None:
        if not self._leader.isNull() and not self._card.isHidden():
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            painter.setPen(QPen(QColor(self._canvas.colours.seam), 1.6))
            painter.drawLine(self._leader)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Follow the size of the canvas."""
        if watched is self._canvas and event.type() == QEvent.Type.Resize:
            self.place()
        return super().eventFilter(watched, event)


def _nearest(box: QRectF, point: QPointF) -> QPointF:
    return QPointF(min(max(point.x(), box.left()), box.right()), min(max(point.y(), box.top()), box.bottom()))
