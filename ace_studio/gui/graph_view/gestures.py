"""Mouse drags (pan, lasso, zoom box) and clicks."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from ace_studio.gui.graph_layout.sizes import TITLE_HEIGHT
from ace_studio.gui.graph_view.camera import MAX_SCALE
from ace_studio.gui.graph_view.surface import GraphSurface
from ace_studio.gui.style import Colours, tr

CLICK_SLACK = 4.0
"""Pixels; a press that moves less is a click."""


class DragKind(StrEnum):
    """What a drag does."""

    PAN = "pan"
    """Moves the picture."""
    LASSO = "lasso"
    """Selects the boxes inside the outline."""
    ZOOM_BOX = tr("zoom box")
    """Shows the box as large as fits."""


def drag_kind(modifiers: Qt.KeyboardModifier, button: Qt.MouseButton) -> DragKind:
    """The drag that these keys start."""
    if button is Qt.MouseButton.LeftButton and modifiers & Qt.KeyboardModifier.ShiftModifier:
        return DragKind.LASSO
    if button is Qt.MouseButton.LeftButton and modifiers & Qt.KeyboardModifier.ControlModifier:
        return DragKind.ZOOM_BOX
    return DragKind.PAN


@dataclass(kw_only=True)
class Drag:
    """A drag in progress."""

    kind: DragKind
    start: QPointF
    modifiers: Qt.KeyboardModifier
    trail: list[QPointF] = field(default_factory=list)
    has_moved: bool = False

    def move_to(self, place: QPointF) -> QPointF:
        """Continue to a place; returns the movement since the last one."""
        last = self.trail[-1] if self.trail else self.start
        if not self.has_moved and (place - self.start).manhattanLength() < CLICK_SLACK:
            return QPointF()
        self.has_moved = True
        self.trail.append(place)
        return place - last

    def draw(self, painter: QPainter, colours: Colours) -> None:
        """Draw the lasso or the box."""
        if not self.has_moved or self.kind is DragKind.PAN:
            return
        fill = QColor(colours.accent)
        fill.setAlpha(36)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(QPen(QColor(colours.accent), 1.2, Qt.PenStyle.DashLine))
        painter.setBrush(fill)
        if self.kind is DragKind.LASSO:
            painter.drawPolygon(QPolygonF([self.start, *self.trail]))
        else:
            painter.drawRect(QRectF(self.start, self.trail[-1]).normalized())


def finish_drag(surface: GraphSurface, drag: Drag, place: QPointF) -> None:
    """Apply a finished drag."""
    if not drag.has_moved:
        _click(surface, drag, place)
    elif drag.kind is DragKind.LASSO:
        _select_inside(surface, drag)
    elif drag.kind is DragKind.ZOOM_BOX:
        box = QRectF(drag.start, place).normalized()
        left, top = surface.camera.to_scene(box.left(), box.top())
        right, bottom = surface.camera.to_scene(box.right(), box.bottom())
        if box.width() > CLICK_SLACK and box.height() > CLICK_SLACK:
            surface.camera.show((left, top, right, bottom), surface.width(), surface.height(), most=MAX_SCALE)
            surface.pan(0.0, 0.0)


def _click(surface: GraphSurface, drag: Drag, place: QPointF) -> None:
    """Select the clicked node; a click on empty space clears the selection."""
    picture = surface.picture
    if picture is None:
        return
    at = surface.camera.to_scene(place.x(), place.y())
    node = picture.node_at(*at)
    adds = bool(drag.modifiers & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier))
    if node >= 0 and picture.arrangement.is_open(node) and not _on_title(surface, node, at[1]):
        surface.set_current(node)
        node = -1
    elif node >= 0:
        surface.set_current(node)
    if node >= 0:
        surface.select([node], adds=adds)
    elif not adds:
        surface.select([])


def _on_title(surface: GraphSurface, block: int, y: float) -> bool:
    return surface.picture is not None and y - surface.picture.scene.y[block] <= TITLE_HEIGHT


def _select_inside(surface: GraphSurface, drag: Drag) -> None:
    """Select the boxes whose middle is inside the lasso."""
    picture = surface.picture
    if picture is None:
        return
    scene, boxes = picture.scene, picture.scene.boxes
    x = (scene.x[boxes] + scene.width[boxes] / 2) * surface.camera.scale + surface.camera.dx
    y = (scene.y[boxes] + scene.height[boxes] / 2) * surface.camera.scale + surface.camera.dy
    outline = np.array([(point.x(), point.y()) for point in (drag.start, *drag.trail)])
    chosen = boxes[inside_polygon(outline, x, y)]
    surface.select(chosen.tolist(), adds=bool(drag.modifiers & Qt.KeyboardModifier.ControlModifier))


def inside_polygon(outline: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which points are inside a closed outline, by the even-odd rule.

    Shapes: outline [corners, 2]; x, y [points] -> [points].
    """
    inside = np.zeros(len(x), dtype=bool)
    for (x0, y0), (x1, y1) in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        crosses = (y0 > y) != (y1 > y)
        inside ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return inside
