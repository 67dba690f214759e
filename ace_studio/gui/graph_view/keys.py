"""The keys of the graph, one row each."""

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.surface import GraphSurface

_Key = Qt.Key


def handle_key(surface: GraphSurface, event: QKeyEvent) -> bool:
    """Run the action of a key; False if it has none."""
    other = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier
    if event.modifiers() & other or surface.picture is None or not len(surface.picture.table):
        return False
    action = KEYS.get(Qt.Key(event.key()))
    if action is None:
        return False
    action(surface, event)
    event.accept()
    return True


def _toggle(surface: GraphSurface, _: QKeyEvent) -> None:
    surface.toggle(surface.current)


def _clear(surface: GraphSurface, _: QKeyEvent) -> None:
    if surface.picture is not None and surface.picture.edges is not None:
        surface.edges_dismissed.emit()
    else:
        surface.select([])


def _walk(step: Callable[[Picture, int], int]) -> Callable[[GraphSurface, QKeyEvent], None]:
    def walk(surface: GraphSurface, event: QKeyEvent) -> None:
        picture = surface.picture
        if picture is None:
            return
        node = step(picture, surface.current) if surface.current >= 0 else picture.first_box()
        if node < 0:
            return
        surface.set_current(node)
        surface.select([node], adds=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        surface.show_node(node)

    return walk


def _nearest(picture: Picture, node: int, nodes: np.ndarray) -> int:
    """The node whose middle is horizontally nearest; -1 if there is none."""
    nodes = nodes[nodes != node]
    if not len(nodes):
        return -1
    scene = picture.scene
    middle = scene.x[nodes] + scene.width[nodes] / 2
    return int(nodes[np.argmin(np.abs(middle - scene.x[node] - scene.width[node] / 2))])


def neighbours(picture: Picture, node: int, *, downstream: bool) -> np.ndarray:
    """Visible boxes that read from a node (or that it reads from), across the frames of open blocks."""
    inside = np.zeros(len(picture.table), dtype=bool)
    inside[picture.rows_inside(node)] = True
    source = np.array(picture.table.edge_source, dtype=np.int64)
    target = np.array(picture.table.edge_target, dtype=np.int64)
    if not downstream:
        source, target = target, source
    rows = target[inside[source] & ~inside[target]] if len(source) else source
    return np.unique(picture.scene.stands_for[rows])


def _down(picture: Picture, node: int) -> int:
    return _nearest(picture, node, neighbours(picture, node, downstream=True))


def _up(picture: Picture, node: int) -> int:
    return _nearest(picture, node, neighbours(picture, node, downstream=False))


def _sideways(direction: int) -> Callable[[Picture, int], int]:
    def step(picture: Picture, node: int) -> int:
        """The next node of the same block at about the same height."""
        scene = picture.scene
        parent = int(picture.tree.parent[node])
        if parent < 0:
            return -1
        beside = picture.tree.children(parent)
        middle = scene.y + scene.height / 2
        level = np.abs(middle[beside] - middle[node]) <= np.maximum(scene.height[beside], scene.height[node]) / 2
        ahead = (scene.x[beside] - scene.x[node]) * direction > 0
        found = beside[level & ahead]
        return int(found[np.argmin(np.abs(scene.x[found] - scene.x[node]))]) if len(found) else -1

    return step


KEYS: dict[Qt.Key, Callable[[GraphSurface, QKeyEvent], None]] = {
    _Key.Key_Space: lambda surface, _: surface.fit(),
    _Key.Key_F: lambda surface, _: surface.frame_selection(),
    _Key.Key_Backspace: lambda surface, _: surface.close_around(),
    _Key.Key_Return: _toggle,
    _Key.Key_Enter: _toggle,
    _Key.Key_Escape: _clear,
    _Key.Key_Down: _walk(_down),
    _Key.Key_Up: _walk(_up),
    _Key.Key_Left: _walk(_sideways(-1)),
    _Key.Key_Right: _walk(_sideways(1)),
    _Key.Key_Plus: lambda surface, _: surface.zoom(1.25),
    _Key.Key_Equal: lambda surface, _: surface.zoom(1.25),
    _Key.Key_Minus: lambda surface, _: surface.zoom(0.8),
    _Key.Key_Home: lambda surface, _: _go_to(surface, Picture.first_box),
    _Key.Key_End: lambda surface, _: _go_to(surface, _last),
}


def _last(picture: Picture) -> int:
    boxes = picture.scene.boxes
    return int(boxes[np.argmax(picture.tree.first_row[boxes])])


def _go_to(surface: GraphSurface, choose: Callable[[Picture], int]) -> None:
    if surface.picture is not None:
        node = choose(surface.picture)
        surface.set_current(node)
        surface.select([node])
        surface.show_node(node)
