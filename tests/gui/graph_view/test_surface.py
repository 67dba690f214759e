"""The surface on which the graph lies: picture, camera, selection, and the verbs on them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from tests.gui.graph_tables import table_of
from tests.gui.looking import (
    block,
    click,
    middle,
    precision_colouring,
    row,
)


def test_backspace_at_the_root_closes_nothing(view, qtbot):
    boxes = len(view.picture.scene.boxes)
    view.canvas.set_current(row(view, "output"))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Backspace)
    assert len(view.picture.scene.boxes) == boxes


def test_a_block_closed_from_its_far_end_comes_back_into_sight(view):
    view.canvas.open_everything()
    view.zoom_by(3.0)
    view.reveal("add_4")
    view.close_block("layers")
    place = middle(view, block(view, "layers"))
    assert view.canvas.rect().contains(place)


def test_fit_leaves_the_legend_free_where_there_is_room_beside_it(view):
    view.resize(700, 1000)
    view.fit()
    left = view.canvas.camera.to_screen(0, 0)[0]
    assert view.canvas.shows_everything()
    assert view.canvas.reserved_left > 0
    right = view.canvas.camera.to_screen(view.picture.scene.total_width, 0)[0]
    assert left >= view.canvas.reserved_left or right == pytest.approx(view.canvas.width() - 14)


def test_a_selection_from_outside_is_silent_and_unknown_ids_are_left_out(view, qtbot):
    with qtbot.assertNotEmitted(view.selection_changed):
        view.set_selection(["act_1", "no_such_op"])
    assert view.selected_ops == ("act_1",)


def test_the_graph_tells_assistive_technology_what_it_shows(view):
    assert view.canvas.accessibleName() == "Graph of Net"
    assert "17 ops" in view.canvas.accessibleDescription()
    view.canvas.set_current(row(view, "stem_linear"))
    assert "linear" in view.canvas.accessibleDescription()


def test_a_graph_of_one_op_is_shown_and_can_be_selected(view):
    view.show_graph(table_of([("only", "aten.relu.default", "act")]))
    click(view, 0)
    assert view.selected_ops == ("only",)
    assert view.breadcrumbs.names == ("Net", "relu")


def test_a_screen_reader_gets_name_operator_and_precision_of_the_selected_op(view):
    view.set_colouring(precision_colouring(view.picture.table))
    view.set_selection(["stem_linear"])
    assert view.canvas.accessibleName().startswith("Graph of Net: stem_linear, linear")
    assert view.canvas.accessibleName().endswith("planned precision int8-static")
    view.set_selection([])
    assert view.canvas.accessibleName() == "Graph of Net"
