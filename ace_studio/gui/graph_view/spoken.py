"""The graph for screen readers: a list whose children are the boxes on the canvas, the current one in focus.

Qt asks a factory for what describes a widget. Children are made when somebody asks for them, so that a graph of 50,000
ops costs nothing where no screen reader runs. Methods that return ``Any`` may return None, which the types of PySide
leave out.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, QRect
from PySide6.QtGui import QAccessible, QAccessibleEvent, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget
from shiboken6 import isValid

from ace_studio.gui.graph_view.keys import neighbours
from ace_studio.gui.graph_view.surface import GraphSurface
from ace_studio.gui.style import tr

MOST_NEIGHBOURS = 6
"""Named in the description of a box."""


class SpokenBox(QAccessibleInterface):
    """One op or closed block."""

    def __init__(self, graph: SpokenGraph, node: int) -> None:
        super().__init__()
        self._graph, self._node = graph, node

    def isValid(self) -> bool:  # noqa: N802 - Qt's name
        """Whether it is on the canvas."""
        return self._graph.shows(self._node)

    def object(self) -> Any:
        """It is no widget."""
        return None

    def parent(self) -> QAccessibleInterface:
        """The graph."""
        return self._graph

    def child(self, index: int) -> Any:
        """It has none."""
        del index
        return None

    def childCount(self) -> int:  # noqa: N802 - Qt's name
        """It has none."""
        return 0

    def childAt(self, x: int, y: int) -> Any:  # noqa: N802 - Qt's name
        """It has none."""
        del x, y
        return None

    def indexOfChild(self, child: QAccessibleInterface) -> int:  # noqa: N802 - Qt's name
        """It has none."""
        del child
        return -1

    def rect(self) -> QRect:
        """Where it is on the screen."""
        return self._graph.place_of(self._node)

    def role(self) -> QAccessible.Role:
        """An entry of a list."""
        return QAccessible.Role.ListItem

    def state(self) -> QAccessible.State:
        """Focused where the arrow keys are; selected."""
        return self._graph.state_of(self._node)

    def text(self, kind: QAccessible.Text) -> str:
        """Its name, and its neighbours as the description."""
        return self._graph.text_of(self._node, kind)

    def setText(self, kind: QAccessible.Text, text: str) -> None:  # noqa: N802 - Qt's name
        """Nothing of it can be written."""


class SpokenGraph(QAccessibleWidget):
    """The canvas: a list of the boxes in it, in the order of execution."""

    def __init__(self, surface: GraphSurface) -> None:
        super().__init__(surface, QAccessible.Role.List)
        self._surface = surface
        self._made: dict[int, SpokenBox] = {}
        self._sorted: tuple[object, np.ndarray] = (None, np.empty(0, dtype=np.int64))
        """A scene, and its boxes in the order of execution."""

    def _boxes(self) -> np.ndarray:
        picture = self._surface.picture if isValid(self._surface) else None
        if picture is None:
            return np.empty(0, dtype=np.int64)
        if self._sorted[0] is not picture.scene:
            boxes = picture.scene.boxes
            self._sorted = picture.scene, boxes[np.argsort(picture.tree.first_row[boxes], kind="stable")]
        return self._sorted[1]

    def box(self, node: int) -> SpokenBox:
        """The child for a node of the picture."""
        if node not in self._made:
            self._made[node] = SpokenBox(self, node)
            QAccessible.registerAccessibleInterface(self._made[node])
        return self._made[node]

    def childCount(self) -> int:  # noqa: N802 - Qt's name
        """Number of boxes on the canvas."""
        return len(self._boxes())

    def child(self, index: int) -> Any:
        """A box by its place in the list."""
        boxes = self._boxes()
        return self.box(int(boxes[index])) if 0 <= index < len(boxes) else None

    def indexOfChild(self, child: QAccessibleInterface) -> int:  # noqa: N802 - Qt's name
        """The place of a box in the list; -1 if it is not in it."""
        if not isinstance(child, SpokenBox):
            return -1
        at = np.flatnonzero(self._boxes() == child._node)
        return int(at[0]) if len(at) else -1

    def childAt(self, x: int, y: int) -> Any:  # noqa: N802 - Qt's name
        """The box at a point of the screen."""
        boxes = self._boxes()
        return next((self.box(int(node)) for node in boxes if self.place_of(int(node)).contains(x, y)), None)

    def focusChild(self) -> Any:  # noqa: N802 - Qt's name
        """The box where the arrow keys are."""
        current = self._surface.current
        return self.box(current) if self._surface.hasFocus() and self.shows(current) else None

    def shows(self, node: int) -> bool:
        """Whether a box is on the canvas, perhaps outside of what is in sight."""
        return node >= 0 and bool((self._boxes() == node).any())

    def place_of(self, node: int) -> QRect:
        """Where a box is, in pixels of the screen."""
        picture, camera = self._surface.picture, self._surface.camera
        if picture is None or not self.shows(node):
            return QRect()
        scene = picture.scene
        left, top = camera.to_screen(float(scene.x[node]), float(scene.y[node]))
        size = float(scene.width[node]) * camera.scale, float(scene.height[node]) * camera.scale
        place = QRect(round(left), round(top), round(size[0]), round(size[1]))
        return QRect(self._surface.mapToGlobal(place.topLeft()), place.size())

    def state_of(self, node: int) -> QAccessible.State:
        """Focus, selection and visibility of a box."""
        state = QAccessible.State()
        picture = self._surface.picture if isValid(self._surface) else None
        if picture is None or not self.shows(node):
            state.invalid = 1
            return state
        state.focusable = state.selectable = 1
        state.focused = int(node == self._surface.current and self._surface.hasFocus())
        state.selected = int(bool(picture.selected[picture.rows_inside(node)].all()))
        state.offscreen = int(not self.place_of(node).intersects(self.rect()))
        return state

    def text_of(self, node: int, kind: QAccessible.Text) -> str:
        """The words for a box."""
        picture = self._surface.picture if isValid(self._surface) else None
        if picture is None or not self.shows(node):
            return ""
        if kind is QAccessible.Text.Name:
            return picture.spoken(node)
        if kind is QAccessible.Text.Description:
            before, after = (self._names(node, downstream=side) for side in (False, True))
            said = [before and tr("Reads from {names}", names=before), after and tr("Read by {names}", names=after)]
            return ". ".join(part for part in said if part)
        return ""

    def _names(self, node: int, *, downstream: bool) -> str:
        picture = self._surface.picture
        assert picture is not None
        found = [int(one) for one in neighbours(picture, node, downstream=downstream) if one != node]
        names = [picture.titles(one)[0] for one in found[:MOST_NEIGHBOURS]]
        return ", ".join([*names, *([f"+{len(found) - len(names)}"] if len(found) > len(names) else [])])

    def forget(self) -> None:
        """Another graph is shown: its boxes are others."""
        for box in self._made.values():
            QAccessible.deleteAccessibleInterface(QAccessible.uniqueId(box))
        self._made.clear()


def _describe(name: str, described: QObject) -> QAccessibleInterface | None:
    if name != GraphSurface.__name__ or not isinstance(described, GraphSurface):
        return None
    made = SpokenGraph(described)
    described.spoken = made  # Qt keeps it as long as the widget, and knows nothing of Python's references
    return made


@cache
def _install() -> None:
    QAccessible.installFactory(_describe)


def speak(surface: GraphSurface) -> None:
    """Make the boxes of a surface known to screen readers, and tell them the one that the arrow keys reach."""
    _install()

    def tell(node: int) -> None:
        graph = surface.spoken if QAccessible.isActive() and surface.hasFocus() else None
        if isinstance(graph, SpokenGraph) and graph.shows(node):
            QAccessible.updateAccessibility(QAccessibleEvent(graph.box(node), QAccessible.Event.Focus))

    def tell_change() -> None:
        if QAccessible.isActive() and isinstance(surface.spoken, SpokenGraph):
            QAccessible.updateAccessibility(QAccessibleEvent(surface.spoken, QAccessible.Event.ObjectReorder))

    surface.current_changed.connect(tell)
    surface.scene_changed.connect(tell_change)


def forget(surface: GraphSurface) -> None:
    """Another graph comes: its boxes are others."""
    if isinstance(surface.spoken, SpokenGraph):
        surface.spoken.forget()
