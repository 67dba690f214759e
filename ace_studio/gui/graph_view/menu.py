"""The context menu of the graph: one row per entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

if TYPE_CHECKING:
    from ace_studio.gui.graph_view.view import GraphView


def fill_menu(view: GraphView, node: int) -> QMenu:
    """The menu for a node, or for the empty space if it is -1. It deletes itself when closed."""
    menu = QMenu(view)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    for title, is_offered, action in ENTRIES:
        if is_offered(view, node):
            menu.addAction(title).triggered.connect(lambda _=False, act=action: act(view, node))
    return menu


def ops_of_menu(view: GraphView, node: int) -> tuple[str, ...]:
    """The ops that a menu is about: the selected ones if the node is one of them or none is meant, else the node's."""
    picture = view.picture
    if picture is None or node < 0 or node == picture.tree.root:
        return view.selected_ops
    rows = picture.rows_inside(node)
    if picture.selected[rows].all():
        return view.selected_ops
    return tuple(picture.table.op_id[row] for row in rows)


def _is_closed(view: GraphView, node: int) -> bool:
    picture = view.picture
    return picture is not None and picture.arrangement.is_block(node) and not picture.arrangement.is_open(node)


def _is_open(view: GraphView, node: int) -> bool:
    return node >= 0 and view.picture is not None and view.picture.arrangement.is_open(node)


def _is_block(view: GraphView, node: int) -> bool:
    return node >= 0 and view.picture is not None and view.picture.arrangement.is_block(node)


def _is_node(view: GraphView, node: int) -> bool:
    return node >= 0 and view.picture is not None


def _is_op(view: GraphView, node: int) -> bool:
    return _is_node(view, node) and not _is_block(view, node)


def _has_two(view: GraphView, node: int) -> bool:
    del node
    return len(view.selected_ops) == 2


def _always(view: GraphView, node: int) -> bool:
    del view, node
    return True


def _open_inside(view: GraphView, node: int, *, to: bool) -> None:
    if view.picture is not None:
        view.canvas.set_open(view.picture.arrangement.inner_blocks(node), to=to)


def _close_alike(view: GraphView, node: int) -> None:
    """Close the block and all that look the same inside."""
    if view.picture is not None:
        tree = view.picture.tree
        alike = [block for block in range(tree.root, tree.node_count) if tree.signature[block] == tree.signature[node]]
        view.canvas.set_open([node, *alike], to=False, anchor=node)


def _copy(view: GraphView, node: int) -> None:
    if view.picture is not None:
        tree = view.picture.tree
        is_op = node < tree.root
        QGuiApplication.clipboard().setText(view.picture.table.op_id[node] if is_op else tree.paths[node - tree.root])


Offered = Callable[["GraphView", int], bool]
Action = Callable[["GraphView", int], None]
ENTRIES: tuple[tuple[str, Offered, Action], ...] = (
    ("Open", _is_closed, lambda view, node: view.canvas.toggle(node)),
    ("Close", _is_open, lambda view, node: view.canvas.toggle(node)),
    ("Close all that are identical", _is_open, _close_alike),
    ("Open everything inside", _is_block, lambda view, node: _open_inside(view, node, to=True)),
    ("Close everything inside", _is_open, lambda view, node: _open_inside(view, node, to=False)),
    ("Select the ops inside", _is_block, lambda view, node: view.canvas.select([node])),
    ("Show in source", _is_op, lambda view, node: view.canvas.toggle(node)),
    ("Zoom to this", _is_node, lambda view, node: view.canvas.frame([node])),
    ("Copy op id", _is_op, _copy),
    ("Copy module path", _is_block, _copy),
    ("Show the path between the two selected ops", _has_two, lambda view, _: _path(view)),
    ("Open all blocks", _always, lambda view, _: view.open_everything()),
    ("Close all blocks", _always, lambda view, _: view.close_everything()),
    ("Show everything", _always, lambda view, _: view.fit()),
)
"""Title, when it is offered, what it does."""


def _path(view: GraphView) -> None:
    view.show_path(*view.selected_ops)
