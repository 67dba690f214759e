"""`GraphView`: the canvas with its map, legend, search field and breadcrumbs."""

from itertools import pairwise

from PySide6.QtCore import QPoint, QRect

from ace_studio.gui.graph_view import GraphView
from ace_studio.gui.graph_view.painting import EMPTY_TEXT
from ace_studio.gui.style.theme import LIGHT
from tests.gui.graph_tables import layered_table, table_of
from tests.gui.looking import colours_in, picture_of


def test_the_theme_changes_the_background(view):
    view.set_theme(LIGHT)
    assert picture_of(view).pixelColor(2, 2).name() == LIGHT.window


def test_without_a_graph_the_view_says_so(view):
    view.show_graph(None)
    assert EMPTY_TEXT in view.canvas.accessibleDescription()
    assert len(colours_in(picture_of(view))) > 2
    assert view.search("x") == ()
    view.fit()
    view.canvas.frame_selection()
    view.canvas.close_around()
    view.set_selection(["x"])
    assert view.selected_ops == ()
    assert not view.search_bar.isEnabled()


def test_an_empty_table_is_no_graph(view):
    view.show_graph(table_of([]))
    assert view.picture is None


def test_a_new_graph_replaces_selection_search_and_position(view):
    view.search("gelu")
    view.search_next()
    view.show_graph(layered_table(2))
    assert view.selected_ops == ()
    assert view.canvas.current == -1
    view.search_next()


def test_the_bar_of_a_narrow_view_keeps_its_parts_apart(qtbot):
    view = GraphView()
    qtbot.addWidget(view)
    view.resize(330, 300)
    view.show_graph(layered_table(4))
    view.search_bar.field.setText("op:nothing_of_this_name")
    view.show()
    qtbot.waitExposed(view)
    bar = view.search_bar
    parts = [bar.field, bar.count, bar.previous_button, bar.next_button, *view._buttons]
    boxes = [part.rect().translated(part.mapTo(view, QPoint(0, 0))) for part in parts if part.isVisible()]
    assert len(boxes) == len(parts)
    assert all(left.right() < right.left() for left, right in pairwise(boxes))
    assert boxes[-1].right() < view.width()
    assert bar.field.width() >= 64


def test_an_op_that_is_gone_to_is_never_under_the_map_or_the_legend(view, laid_out):
    view.resize(800, 640)
    view.canvas.open_everything()
    laid_out(view)
    for op_id in view.picture.table.op_id:
        view.canvas.zoom(1.0 / view.canvas.camera.scale)
        view.reveal(op_id)
        laid_out(view)
        box = view.picture.bounds([view.canvas.current])
        corners = [QPoint(*map(round, view.canvas.camera.to_screen(x, y))) for x, y in (box[:2], box[2:])]
        overlays = [one for one in (view.minimap, view.legend) if one.isVisible()]
        assert not any(one.geometry().intersects(QRect(*corners)) for one in overlays), op_id
    assert view.minimap.isVisible()
