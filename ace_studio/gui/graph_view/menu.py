"""The context menu of the graph: one row per entry."""

from collections.abc import Callable
from functools import partial

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from ace_studio.gui.graph_view.paths import reach
from ace_studio.gui.graph_view.surface import GraphSurface
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.small import short_lived_menu


def fill_menu(surface: GraphSurface, node: int) -> QMenu:
    """The menu for a node, or for the empty space if it is -1. It deletes itself when closed."""
    menu = short_lived_menu(surface)
    for title, is_offered, action in ENTRIES:
        if is_offered(surface, node):
            menu.addAction(title).triggered.connect(lambda _=False, act=action: act(surface, node))
    return menu


def ops_of_menu(surface: GraphSurface, node: int) -> tuple[str, ...]:
    """The ops of a menu: the selected ops if the node is among them or -1, else those of the node."""
    picture = surface.picture
    if picture is None or node < 0 or node == picture.tree.root:
        return surface.selected_ops
    rows = picture.rows_inside(node)
    if picture.selected[rows].all():
        return surface.selected_ops
    return tuple(picture.table.op_id[row] for row in rows)


def _is_closed(surface: GraphSurface, node: int) -> bool:
    return _is_block(surface, node) and not _is_open(surface, node)


def _is_open(surface: GraphSurface, node: int) -> bool:
    return node >= 0 and surface.picture is not None and surface.picture.arrangement.is_open(node)


def _is_block(surface: GraphSurface, node: int) -> bool:
    return node >= 0 and surface.picture is not None and surface.picture.arrangement.is_block(node)


def _is_node(surface: GraphSurface, node: int) -> bool:
    return node >= 0 and surface.picture is not None


def _is_op(surface: GraphSurface, node: int) -> bool:
    return _is_node(surface, node) and not _is_block(surface, node)


def _has_two(surface: GraphSurface, node: int) -> bool:
    del node
    return len(surface.selected_ops) == 2


def _always(surface: GraphSurface, node: int) -> bool:
    del surface, node
    return True


def _open_inside(surface: GraphSurface, node: int, *, to: bool) -> None:
    if surface.picture is not None:
        surface.set_open(surface.picture.arrangement.inner_blocks(node), to=to)


def _close_alike(surface: GraphSurface, node: int) -> None:
    """Close the block and all blocks that look the same inside."""
    if surface.picture is not None:
        tree = surface.picture.tree
        alike = [block for block in range(tree.root, tree.node_count) if tree.signature[block] == tree.signature[node]]
        surface.set_open([node, *alike], to=False, anchor=node)


def _select_reach(surface: GraphSurface, node: int, *, downstream: bool) -> None:
    if surface.picture is not None:
        rows = surface.picture.rows_inside(node)
        surface.select(reach(surface.picture.table, rows, downstream=downstream).tolist())


def _copy(surface: GraphSurface, node: int) -> None:
    if surface.picture is not None:
        tree = surface.picture.tree
        is_op = node < tree.root
        QGuiApplication.clipboard().setText(
            surface.picture.table.op_id[node] if is_op else tree.paths[node - tree.root]
        )


Offered = Callable[[GraphSurface, int], bool]
Action = Callable[[GraphSurface, int], object]
ENTRIES: tuple[tuple[str, Offered, Action], ...] = (
    ("Open", _is_closed, lambda surface, node: surface.toggle(node)),
    ("Close", _is_open, lambda surface, node: surface.toggle(node)),
    (tr("Close all that are identical"), _is_open, _close_alike),
    (tr("Open everything inside"), _is_block, partial(_open_inside, to=True)),
    (tr("Close everything inside"), _is_open, partial(_open_inside, to=False)),
    (tr("Select the ops inside"), _is_block, lambda surface, node: surface.select([node])),
    (tr("Show in source"), _is_op, lambda surface, node: surface.toggle(node)),
    (tr("Zoom to this"), _is_node, lambda surface, node: surface.frame([node])),
    (tr("Copy op id"), _is_op, _copy),
    (tr("Copy module path"), _is_block, _copy),
    (
        tr("Show the path between the two selected ops"),
        _has_two,
        lambda surface, _: surface.show_path(*surface.selected_ops),
    ),
    (tr("Select everything this depends on"), _is_node, partial(_select_reach, downstream=False)),
    (tr("Select everything that depends on this"), _is_node, partial(_select_reach, downstream=True)),
    (tr("Open all blocks"), _always, lambda surface, _: surface.open_everything()),
    (tr("Close all blocks"), _always, lambda surface, _: surface.close_everything()),
    (tr("Show everything"), _always, lambda surface, _: surface.fit()),
)
"""Title, when it is offered, what it does."""
