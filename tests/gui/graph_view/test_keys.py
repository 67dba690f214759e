"""The keys of the graph, one row each."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from tests.gui.gestures import open_block
from tests.gui.looking import CTRL, block, middle, row


def test_backspace_closes_the_block_around_the_current_op(view, qtbot):
    open_block(view, "layers.2")
    view.canvas.set_current(row(view, "add_2"))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Backspace)
    assert not view.picture.arrangement.is_open(block(view, "layers.2"))
    assert view.canvas.current == block(view, "layers.2")
    qtbot.keyClick(view.canvas, Qt.Key.Key_Backspace)
    assert not view.picture.arrangement.is_open(block(view, "layers"))


def test_space_fits_everything_into_the_window(view, qtbot):
    view.zoom_by(4.0)
    assert not view.canvas.shows_everything()
    qtbot.keyClick(view.canvas, Qt.Key.Key_Space)
    assert view.canvas.shows_everything()


def test_f_frames_the_selection(view, qtbot):
    view.canvas.open_everything()
    view.set_selection(["linear_3", "act_3"])
    qtbot.keyClick(view.canvas, Qt.Key.Key_F)
    assert view.canvas.rect().contains(middle(view, row(view, "linear_3")))
    assert view.canvas.camera.scale > 0.5


def test_arrow_keys_walk_along_edges_through_open_blocks(view, qtbot):
    view.canvas.open_everything()
    view.canvas.set_current(row(view, "stem_linear"))
    walked = []
    for _ in range(4):
        qtbot.keyClick(view.canvas, Qt.Key.Key_Down)
        walked.append(view.picture.table.op_id[view.canvas.current])
    assert walked[0] == "stem_norm"
    assert walked[1] in {"linear_0", "add_0"}
    assert view.selected_ops == (walked[-1],)
    qtbot.keyClick(view.canvas, Qt.Key.Key_Up)
    assert view.picture.table.op_id[view.canvas.current] != walked[-1]


def test_the_first_arrow_key_goes_to_the_first_box_and_sideways_to_its_neighbour(view, qtbot):
    qtbot.keyClick(view.canvas, Qt.Key.Key_Down)
    assert view.selected_ops == ("x",)
    qtbot.keyClick(view.canvas, Qt.Key.Key_End)
    assert view.selected_ops == ("output",)


def test_keys_of_the_window_pass_through(view):
    QTest.keyClick(view.canvas, Qt.Key.Key_Space, CTRL)
    assert view.canvas.camera.scale > 0
