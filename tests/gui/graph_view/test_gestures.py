"""Mouse drags (pan, lasso, zoom box) and clicks."""

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from ace_studio.gui.graph_view.gestures import inside_polygon
from tests.gui.looking import CTRL, LEFT, NONE, SHIFT, block, click, drag, middle, row


def test_a_box_dragged_with_ctrl_is_zoomed_into(view):
    left, top = view.canvas.camera.to_scene(400, 300)
    drag(view, [QPoint(400, 300), QPoint(450, 330), QPoint(500, 380)], CTRL)
    shown_left, shown_top = view.canvas.camera.to_scene(0, 0)
    assert shown_left < left
    assert shown_top < top
    assert view.canvas.camera.to_screen(left, top)[0] < 400


def test_a_click_selects_an_op_and_tells_it_once(view, qtbot):
    with qtbot.waitSignal(view.selection_changed) as signal:
        click(view, row(view, "stem_linear"))
    assert signal.args == [("stem_linear",)]
    with qtbot.assertNotEmitted(view.selection_changed):
        click(view, row(view, "stem_linear"))


def test_a_click_on_a_block_selects_all_its_ops(view):
    click(view, block(view, "layers"))
    assert len(view.selected_ops) == 15


def test_ctrl_click_adds_and_takes_away(view):
    click(view, row(view, "x"))
    click(view, row(view, "mask"), CTRL)
    assert view.selected_ops == ("x", "mask")
    click(view, row(view, "x"), CTRL)
    assert view.selected_ops == ("mask",)


def test_a_click_beside_everything_and_esc_clear_the_selection(view, qtbot):
    click(view, row(view, "x"))
    QTest.mouseClick(view.canvas, LEFT, NONE, QPoint(5, 5))
    assert view.selected_ops == ()
    click(view, row(view, "x"))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Escape)
    assert view.selected_ops == ()


def test_the_lasso_selects_what_it_encircles(view):
    x, y = middle(view, row(view, "x")).toTuple()
    drag(view, [QPoint(x - 90, y - 40), QPoint(x + 30, y - 40), QPoint(x + 30, y + 30), QPoint(x - 90, y + 30)], SHIFT)
    assert view.selected_ops == ("x",)


def test_points_are_inside_a_polygon_by_the_even_odd_rule():
    outline = np.array([(0, 0), (10, 0), (10, 10), (0, 10)], dtype=float)
    inside = inside_polygon(outline, np.array([5.0, 15.0, -1.0]), np.array([5.0, 5.0, 5.0]))
    assert inside.tolist() == [True, False, False]
