"""The widget that draws the graph, and turns events of mouse and keyboard into calls of the surface."""

import math

from PySide6 import QtGui
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QToolTip, QWidget

from ace_studio.gui.graph_view.frames import draw_frame_names
from ace_studio.gui.graph_view.gestures import Drag, DragKind, drag_kind, finish_drag
from ace_studio.gui.graph_view.keys import handle_key
from ace_studio.gui.graph_view.painting import draw_empty, paint_ground
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.spoken import forget, speak
from ace_studio.gui.graph_view.stage import Stage
from ace_studio.gui.graph_view.surface import GraphSurface
from ace_studio.gui.graph_view.texts import TextCache
from ace_studio.gui.graph_view.tooltips import tooltip_of

SETTLE_MS = 150
"""So long after the last step of a pan, the picture is drawn anew in full detail."""
DENSE = 400
"""From this many boxes on, detail depends on how many are drawn at once."""
WHEEL_STEP = 1.0015
"""Zoom per eighth of a degree of the wheel; one notch is 120 of them."""


class GraphCanvas(GraphSurface):
    """Draws the whole scene in one widget, without graphics items."""

    painted = Signal(object)
    """The painter, after each frame; receivers draw over the picture."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.texts = TextCache()
        self.drag: Drag | None = None
        self._last_size = QSize()
        self._is_seen = False
        """Whether the picture was painted since it was set."""
        self._sheet = QtGui.QPixmap()
        self._sheet_key: tuple[object, ...] = ()
        self._sheet_at = (0.0, 0.0)
        self._settle = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._settle.timeout.connect(self._draw_anew)
        speak(self)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def show_picture(self, picture: Picture | None) -> None:
        """Show another graph; a drag that goes on ends."""
        self.drag, self._is_seen = None, False
        forget(self)
        super().show_picture(picture)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw a frame."""
        painter = QtGui.QPainter(self)
        painter.fillRect(event.rect(), QtGui.QColor(self.colours.window))
        if self.picture is None and self.layout_words:
            pass  # the note says it
        elif self.picture is None or not len(self.picture.table):
            draw_empty(painter, self.texts, self.colours, self.width(), self.height())
        else:
            self._is_seen = True
            self._refresh_sheet(self.picture)
            painter.drawPixmap(0, 0, self._sheet)
            draw_frame_names(self._stage(painter, self.picture))
            if self.drag is not None:
                self.drag.draw(painter, self.colours)
            self.painted.emit(painter)
        painter.end()

    def _refresh_sheet(self, picture: Picture) -> None:
        """Bring the drawn picture up to date; after a pan only the strips that came into the window are drawn."""
        camera, ratio = self.camera, self.devicePixelRatioF()
        key = (
            picture, picture.version, picture.hidden_categories, picture.selected.tobytes(), picture.matched.tobytes(),
            camera.scale, self.colours, self.current if self.hasFocus() else -1, self.hovered, self.size(), ratio,
            QtGui.QGuiApplication.font().family(),
        )  # fmt: skip
        step_x, step_y = (camera.dx - self._sheet_at[0]) * ratio, (camera.dy - self._sheet_at[1]) * ratio
        dx, dy = round(step_x), round(step_y)
        wide, tall = self.width(), self.height()
        is_far = abs(step_x - dx) + abs(step_y - dy) > 1e-6 or abs(dx) >= wide * ratio or abs(dy) >= tall * ratio
        left, up = dx / ratio, dy / ratio
        if key != self._sheet_key or is_far:
            self._sheet = QtGui.QPixmap(self.size() * ratio)
            self._sheet.setDevicePixelRatio(ratio)
            self._draw_ground(picture, (0, 0, wide, tall))
        elif dx or dy:
            self._sheet.scroll(dx, dy, self._sheet.rect())
            if dx:
                self._draw_ground(picture, (0, 0, left, tall) if dx > 0 else (wide + left, 0, wide, tall))
            if dy:
                self._draw_ground(picture, (0, 0, wide, up) if dy > 0 else (0, tall + up, wide, tall))
            if len(picture.scene.boxes) > DENSE:
                self._settle.start()
        self._sheet_key, self._sheet_at = key, (camera.dx, camera.dy)

    def _draw_ground(self, picture: Picture, exposed: tuple[float, float, float, float]) -> None:
        """Draw a part of the window, given by left, top, right and bottom, into the sheet."""
        painter = QtGui.QPainter(self._sheet)
        left, top, right, bottom = exposed
        area = QRect(int(left), int(top), math.ceil(right) - int(left), math.ceil(bottom) - int(top))
        painter.setClipRect(area)
        painter.fillRect(area, QtGui.QColor(self.colours.window))
        stage = self._stage(painter, picture)
        stage.exposed = exposed
        paint_ground(stage)
        painter.end()

    def _draw_anew(self) -> None:
        self._sheet_key = ()
        self.update()

    def _stage(self, painter: QtGui.QPainter, picture: Picture) -> Stage:
        return Stage(
            painter=painter,
            picture=picture,
            camera=self.camera,
            colours=self.colours,
            texts=self.texts,
            width=self.width(),
            height=self.height(),
            current=self.current if self.hasFocus() else -1,
            hovered=self.hovered,
        )

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Keep a fitted graph fitted and the beginning of a large one in sight, else keep the middle."""
        # Not the event's own old size: that is unknown whenever the canvas was hidden meanwhile.
        before, self._last_size = self._last_size, event.size()
        if self._is_opening:
            # Which blocks are open does not change before the eyes of the user.
            (self.show_beginning if self._is_seen else self.open)()
        elif self._is_fitted or not before.isValid():
            self.fit()
        else:
            grown = event.size() - before
            self.camera.dx += grown.width() / 2
            self.camera.dy += grown.height() / 2
            self.camera_moved.emit()
        super().resizeEvent(event)

    def wheelEvent(self, event: QtGui.QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Zoom at the cursor; with Shift or sideways, scroll."""
        delta = event.angleDelta()
        place = event.position()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.pan((delta.y() or delta.x()) * 0.6, 0.0)
        elif abs(delta.x()) > abs(delta.y()):
            self.pan(delta.x() * 0.6, 0.0)
        elif delta.y():
            self.zoom(WHEEL_STEP ** delta.y(), at=(place.x(), place.y()))
        event.accept()

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Start a drag; its kind depends on the modifier keys."""
        if self.picture is None or event.button() not in {Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton}:
            return
        kind = drag_kind(event.modifiers(), event.button())
        self.drag = Drag(kind=kind, start=event.position(), modifiers=event.modifiers())

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Continue the drag, or highlight the box under the pointer."""
        if self.drag is None:
            self._hover(event.position().x(), event.position().y())
            return
        step = self.drag.move_to(event.position())
        if self.drag.has_moved and self.drag.kind is DragKind.PAN:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.pan(step.x(), step.y())
        self.update()

    def mouseReleaseEvent(self, event: QtGui.QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """End the drag; one without movement is a click."""
        drag, self.drag = self.drag, None
        self.unsetCursor()
        if drag is not None and self.picture is not None:
            finish_drag(self, drag, event.position())
        self.update()

    def mouseDoubleClickEvent(self, event: QtGui.QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Open or close a block in place; activate an op."""
        if self.picture is None or event.button() is not Qt.MouseButton.LeftButton:
            return
        place = event.position()
        self.toggle(self.picture.node_at(*self.camera.to_scene(place.x(), place.y())))

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """See `keys`."""
        if self.picture is None or not handle_key(self, event):
            super().keyPressEvent(event)

    def focusInEvent(self, event: QtGui.QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Show the keyboard focus."""
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QtGui.QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Hide the keyboard focus."""
        self.update()
        super().focusOutEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """End the highlight."""
        self.hovered = -1
        self.update()
        super().leaveEvent(event)

    def event(self, event: QEvent) -> bool:
        """Answer requests for a tooltip."""
        if isinstance(event, QtGui.QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._show_tooltip(event.pos(), event.globalPos())
            return True
        return super().event(event)

    def _hover(self, x: float, y: float) -> None:
        node = self.picture.node_at(*self.camera.to_scene(x, y)) if self.picture is not None else -1
        if node >= 0 and self.picture is not None and self.picture.arrangement.is_open(node):
            node = -1
        if node != self.hovered:
            self.hovered = node
            self.update()

    def _show_tooltip(self, place: QPoint, on_screen: QPoint) -> None:
        picture = self.picture
        node = picture.node_at(*self.camera.to_scene(place.x(), place.y())) if picture is not None else -1
        if node < 0 or picture is None:
            QToolTip.hideText()
        else:
            QToolTip.showText(on_screen, tooltip_of(picture, node), self)
