"""The surface on which the graph lies: picture, camera, selection, and the verbs on them."""

import pytest
from PySide6.QtCore import Qt

from ace_studio.gui.graph_view import GraphView
from ace_studio.gui.graph_view.surface import READABLE_SCALE
from tests.gui.gestures import close_block
from tests.gui.graph_tables import large_table, layered_table, table_of
from tests.gui.looking import block, click, middle, precision_colouring, row


def test_backspace_at_the_root_closes_nothing(view, qtbot):
    boxes = len(view.picture.scene.boxes)
    view.canvas.set_current(row(view, "output"))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Backspace)
    assert len(view.picture.scene.boxes) == boxes


def test_a_block_closed_from_its_far_end_comes_back_into_sight(view):
    view.canvas.open_everything()
    view.zoom_by(3.0)
    view.reveal("add_4")
    close_block(view, "layers")
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


def test_a_selection_is_known_by_its_ops_whoever_made_it(view):
    chosen = ("act_1",)
    view.set_selection(chosen)
    assert view.has_selected(chosen)
    assert view.has_selected(("act_1",))
    click(view, row(view, "stem_linear"))
    assert not view.has_selected(chosen)
    assert view.has_selected(("stem_linear",))
    view.set_selection(unknown := ("act_1", "no_such_op"))
    assert not view.has_selected(unknown)


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


@pytest.mark.parametrize("size", [(560, 480), (760, 560), (1280, 800)])
def test_names_in_the_first_picture_can_be_read_in_a_window_of_any_size(view, size, laid_out):
    view.resize(*size)
    loose = table_of(
        [(f"op_{at}", "aten.add.Tensor", "") for at in range(200)], edges=[(at, at + 1) for at in range(199)]
    )
    for table in (loose, large_table(10_000), layered_table(40, distinct=True), large_table(160)):
        view.show_graph(table)
        laid_out(view)
        assert view.canvas.camera.scale >= READABLE_SCALE
        assert view.canvas.rect().contains(middle(view, view.picture.first_box()))


def test_a_graph_that_does_not_fit_is_still_at_its_beginning_after_the_window_grows(view, laid_out):
    view.resize(560, 480)
    view.show_graph(large_table(10_000))
    laid_out(view)
    view.canvas.repaint()
    view.resize(760, 500)
    assert view.canvas.camera.scale >= READABLE_SCALE
    assert not view.canvas.shows_everything()
    assert view.canvas.rect().contains(middle(view, view.picture.first_box()))


def test_a_graph_set_while_the_view_is_hidden_opens_for_the_size_at_which_it_is_seen(qtbot):
    view = GraphView()
    qtbot.addWidget(view)
    view.resize(400, 300)
    view.show_graph(layered_table(40, distinct=True))
    few = len(view.picture.scene.boxes)
    view.resize(1900, 1500)
    with qtbot.waitExposed(view):
        view.show()
    view.canvas.repaint()
    assert len(view.picture.scene.boxes) > few
    more = len(view.picture.scene.boxes)
    view.resize(500, 400)
    assert len(view.picture.scene.boxes) == more, "blocks do not close before the eyes of the user"
