"""The widget in which the graph is drawn: it owns the camera, and turns gestures into changes of the picture."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from ace_studio.gui.graph_view.camera import Camera
from ace_studio.gui.graph_view.colours import DARK, GraphColours
from ace_studio.gui.graph_view.gestures import Drag, DragKind, drag_kind, finish_drag
from ace_studio.gui.graph_view.keys import handle_key
from ace_studio.gui.graph_view.painting import EMPTY_HINT, EMPTY_TEXT, draw_empty, paint_scene
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.stage import Stage
from ace_studio.gui.graph_view.texts import TextCache
from ace_studio.gui.graph_view.tooltips import tooltip_of

FIT_MARGIN = 14.0
WHEEL_STEP = 1.0015
"""Zoom per eighth of a degree of the wheel; one notch is 120 of them."""


class GraphCanvas(QWidget):
    """One widget, one scene, no items."""

    selected_by_user = Signal()
    activated = Signal(int)
    """Row of an op that was double-clicked or entered."""
    camera_moved = Signal()
    scene_changed = Signal()
    current_changed = Signal(int)
    edges_dismissed = Signal()
    """Escape, while some edges are looked at."""
    painted = Signal(object)
    """The painter, after a frame was drawn: for what lies over the picture."""

    def __init__(self, parent: QWidget | None = None) -> None:
        """Start without a graph."""
        super().__init__(parent)
        self.picture: Picture | None = None
        self.camera = Camera()
        self.colours: GraphColours = DARK
        self.texts = TextCache()
        self.current = -1
        self.hovered = -1
        self.drag: Drag | None = None
        self.reserved_left = 0.0
        """So many pixels at the left are covered, and left free by `fit` where there is room at the right."""
        self._is_fitted = True
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Graph")
        self.setMinimumSize(120, 90)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for a readable picture."""
        return QSize(900, 640)

    # What is shown

    def show_picture(self, picture: Picture | None) -> None:
        """Show another graph, fitted."""
        self.picture = picture
        self.current = self.hovered = -1
        self.drag = None
        self.fit()
        self.scene_changed.emit()
        self._describe()

    def fit(self) -> None:
        """Show everything."""
        if self.picture is not None and len(self.picture.table):
            scene = self.picture.scene
            whole = (0.0, 0.0, scene.total_width, scene.total_height)
            self.camera.show(whole, self.width(), self.height())
            left = self.camera.dx
            right = self.width() - self.camera.to_screen(scene.total_width, 0)[0]
            self.camera.dx += max(0.0, min(self.reserved_left - left, right - FIT_MARGIN))
        self._moved()
        self._is_fitted = True

    def frame(self, nodes: Iterable[int], *, at_most: float = math.inf) -> None:
        """Show these visible nodes as large as fits, up to a scale; does nothing if none is visible."""
        bounds = self.picture.bounds(nodes) if self.picture is not None else None
        if bounds is not None:
            self.camera.show(bounds, self.width(), self.height())
            if self.camera.scale > at_most:
                self.zoom(at_most / self.camera.scale)
            self._moved()

    def show_node(self, node: int) -> None:
        """Scroll to a node if it is out of sight; zoom in if it is too small to read."""
        bounds = self.picture.bounds([node]) if self.picture is not None else None
        if bounds is None:
            return
        if self.camera.scale < 0.45:
            self.camera.scale = 0.8
            self.camera.center_on(
                (bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2, width=self.width(), height=self.height()
            )
        # Far enough from the edge not to end up under the map or the legend.
        margin = min(170.0, 0.25 * min(self.width(), self.height()))
        self.camera.nudge_into_view(bounds, self.width(), self.height(), margin=margin)
        self._moved()

    def zoom(self, factor: float, *, at: tuple[float, float] | None = None) -> None:
        """Zoom about a place of the widget, or about its middle."""
        x, y = at or (self.width() / 2, self.height() / 2)
        self.camera.zoom_at(x, y, factor=factor, least=self._least_scale())
        self._moved()

    def pan(self, dx: float, dy: float) -> None:
        """Move the picture by pixels."""
        self.camera.dx += dx
        self.camera.dy += dy
        self._moved()

    def shows_everything(self) -> bool:
        """Whether the whole graph is within the window."""
        if self.picture is None:
            return True
        scene = self.picture.scene
        left, top = self.camera.to_screen(0, 0)
        right, bottom = self.camera.to_screen(scene.total_width, scene.total_height)
        return left >= 0 and top >= 0 and right <= self.width() and bottom <= self.height()

    def _least_scale(self) -> float:
        """Zooming out ends when the whole graph is a quarter of the widget."""
        if self.picture is None:
            return 0.01
        scene = self.picture.scene
        fits = min(self.width() / max(scene.total_width, 1.0), self.height() / max(scene.total_height, 1.0))
        return min(1.0, fits * 0.25)

    def moved_from_outside(self) -> None:
        """Somebody set the camera: draw anew, and tell those who follow it."""
        self._moved()

    def _moved(self) -> None:
        self._is_fitted = False
        self.update()
        self.camera_moved.emit()

    # Opening and closing

    def set_open(self, blocks: list[int], *, to: bool, anchor: int | None = None) -> None:
        """Open or close blocks; the anchor block stays where it is on the screen."""
        picture = self.picture
        if picture is None or not blocks:
            return
        anchor = blocks[0] if anchor is None else anchor
        before = self._corner(anchor)
        if to:
            picture.arrangement.open(blocks)
        else:
            picture.arrangement.close(blocks)
        picture.refresh()
        if before is not None and picture.scene.visible[anchor]:
            after = self._corner(anchor)
            if after is not None:
                self.camera.dx += before[0] - after[0]
                self.camera.dy += before[1] - after[1]
        if not to:
            self._bring_back(anchor)
        if self.current >= 0 and not picture.scene.visible[self.current]:
            self.set_current(anchor)
        self.hovered = -1
        self._moved()
        self.scene_changed.emit()
        self._describe()

    def _corner(self, node: int) -> tuple[float, float] | None:
        """Upper left corner of a visible node on the screen."""
        scene = self.picture.scene if self.picture is not None else None
        if scene is None or not scene.visible[node]:
            return None
        return self.camera.to_screen(float(scene.x[node]), float(scene.y[node]))

    def _bring_back(self, node: int) -> None:
        """A block closed from its far end may be off the screen: scroll just to it."""
        bounds = self.picture.bounds([node]) if self.picture is not None else None
        if bounds is not None:
            right, bottom = self.camera.to_screen(bounds[2], bounds[3])
            left, top = self.camera.to_screen(bounds[0], bounds[1])
            if right < 0 or bottom < 0 or left > self.width() or top > self.height():
                self.camera.nudge_into_view(bounds, self.width(), self.height())

    def toggle(self, node: int) -> None:
        """Open a closed block, close an open one; activate an op."""
        if self.picture is None or node < 0:
            return
        if not self.picture.arrangement.is_block(node):
            self.activated.emit(node)
            return
        self.set_open([node], to=not self.picture.arrangement.is_open(node))

    def close_around(self) -> None:
        """Close the block in which the current node is; without one, the block in the middle of the window."""
        if self.picture is None:
            return
        block = self._around()
        if block >= 0 and block != self.picture.tree.root:
            self.set_open([block], to=False)
            self.set_current(block)

    def _around(self) -> int:
        """The open block that a step up would close; -1 if there is none."""
        picture = self.picture
        if picture is None:
            return -1
        if self.current >= 0:
            is_open_block = picture.arrangement.is_block(self.current) and picture.arrangement.is_open(self.current)
            return self.current if is_open_block else int(picture.tree.parent[self.current])
        return picture.frame_at(*self.camera.to_scene(self.width() / 2, self.height() / 2))

    # Selection

    def set_current(self, node: int) -> None:
        """Move the keyboard focus within the graph."""
        if node != self.current:
            self.current = node
            self.current_changed.emit(node)
            self._describe()
            self.update()

    def select(self, nodes: Iterable[int], *, adds: bool = False) -> None:
        """Select the rows in these nodes because the user asked for it. Adding a selected node removes it."""
        picture = self.picture
        if picture is None:
            return
        before = picture.selected.copy()
        if not adds:
            picture.selected[:] = False
        for node in nodes:
            rows = picture.rows_inside(node)
            picture.selected[rows] = not (adds and picture.selected[rows].all())
        self.update()
        if not np.array_equal(before, picture.selected):
            self.selected_by_user.emit()
            self._describe()

    def _describe(self) -> None:
        """Tell assistive technology what is shown."""
        picture = self.picture
        if picture is None or not len(picture.table):
            self.setAccessibleName("Graph")
            self.setAccessibleDescription(f"{EMPTY_TEXT}. {EMPTY_HINT}")
            return
        self.setAccessibleName(f"Graph of {picture.table.name or 'the model'}")
        here = f" At {', '.join(part for part in picture.titles(self.current) if part)}." if self.current >= 0 else ""
        subgraphs, breaks = len(picture.partial.subgraph_of_block), len(picture.partial.seams)
        partial = f" Captured in {subgraphs} subgraphs with {breaks} breaks between them." if subgraphs else ""
        self.setAccessibleDescription(
            f"{picture.table.op_count} ops in {len(picture.scene.boxes)} boxes and {len(picture.scene.frames)} open "
            f"blocks; {int(picture.selected.sum())} selected.{partial}{here}"
        )

    # Events

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw a frame."""
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(self.colours.background))
        if self.picture is None or not len(self.picture.table):
            draw_empty(painter, self.texts, self.colours, self.width(), self.height())
        else:
            stage = self._stage(painter, self.picture)
            # The map lies over the canvas: when it alone changes, only the part below it is drawn again.
            exposed = event.rect()
            stage.exposed = (exposed.left(), exposed.top(), exposed.right() + 1, exposed.bottom() + 1)
            paint_scene(stage)
            if self.drag is not None:
                self.drag.draw(painter, self.colours)
            self.painted.emit(painter)
        painter.end()

    def _stage(self, painter: QPainter, picture: Picture) -> Stage:
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

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Keep a fitted graph fitted, else keep the middle."""
        if self._is_fitted or event.oldSize().width() <= 0:
            self.fit()
        else:
            grown = event.size() - event.oldSize()
            self.camera.dx += grown.width() / 2
            self.camera.dy += grown.height() / 2
            self.camera_moved.emit()
        super().resizeEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
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

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Start a drag; what it is depends on the modifier keys."""
        if self.picture is None or event.button() not in {Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton}:
            return
        kind = drag_kind(event.modifiers(), event.button())
        self.drag = Drag(kind=kind, start=event.position(), modifiers=event.modifiers())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Go on with the drag, or mark what is under the pointer."""
        if self.drag is None:
            self._hover(event.position().x(), event.position().y())
            return
        step = self.drag.move_to(event.position())
        if self.drag.has_moved and self.drag.kind is DragKind.PAN:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.pan(step.x(), step.y())
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """End the drag; without movement it was a click."""
        drag, self.drag = self.drag, None
        self.unsetCursor()
        if drag is not None and self.picture is not None:
            finish_drag(self, drag, event.position())
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Open or close in place; activate an op."""
        if self.picture is None or event.button() is not Qt.MouseButton.LeftButton:
            return
        place = event.position()
        self.toggle(self.picture.node_at(*self.camera.to_scene(place.x(), place.y())))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """See `keys`."""
        if self.picture is None or not handle_key(self, event):
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Show where the keyboard is."""
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Hide where the keyboard is."""
        self.update()
        super().focusOutEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Nothing is under the pointer any more."""
        self.hovered = -1
        self.update()
        super().leaveEvent(event)

    def event(self, event: QEvent) -> bool:
        """Answer requests for a tooltip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
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
