"""The widget that draws the graph, and turns events of mouse and keyboard into calls of the surface."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from tests.gui.gestures import open_block
from tests.gui.looking import LEFT, NONE, block, drag, middle, picture_of, row


def corner(view, node):
    scene, camera = view.picture.scene, view.canvas.camera
    return np.array(camera.to_screen(scene.x[node], scene.y[node]))


@pytest.mark.parametrize("scale", [0.3, 0.9, 2.0])
def test_a_double_clicked_block_opens_and_closes_and_stays_within_a_pixel(view, scale):
    layers = block(view, "layers")
    view.zoom_by(scale / view.canvas.camera.scale)
    view.canvas.show_node(layers)
    before = corner(view, layers)
    QTest.mouseDClick(view.canvas, LEFT, NONE, middle(view, layers))
    assert view.picture.arrangement.is_open(layers)
    assert np.abs(corner(view, layers) - before).max() <= 1.0
    QTest.mouseDClick(view.canvas, LEFT, NONE, middle(view, layers))
    assert not view.picture.arrangement.is_open(layers)
    assert np.abs(corner(view, layers) - before).max() <= 1.0


def test_an_opened_inner_block_stays_where_it_was(view):
    open_block(view, "layers")
    inner = block(view, "layers.3")
    view.canvas.show_node(inner)
    before = corner(view, inner)
    view.canvas.toggle(inner)
    assert np.abs(corner(view, inner) - before).max() <= 1.0


def test_enter_opens_the_current_block_and_activates_an_op(view, qtbot):
    view.canvas.set_current(block(view, "layers"))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Return)
    assert view.picture.arrangement.is_open(block(view, "layers"))
    view.canvas.set_current(row(view, "output"))
    with qtbot.waitSignal(view.op_activated) as signal:
        qtbot.keyClick(view.canvas, Qt.Key.Key_Return)
    assert signal.args == ["output"]


def test_the_wheel_zooms_at_the_cursor(view):
    place = QPointF(300, 200)
    under = view.canvas.camera.to_scene(300, 200)
    before = view.canvas.camera.scale
    event = QWheelEvent(
        place, place, QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton, NONE, Qt.ScrollPhase.NoScrollPhase, False
    )
    QApplication.sendEvent(view.canvas, event)
    assert view.canvas.camera.scale > before
    assert view.canvas.camera.to_scene(300, 200) == pytest.approx(under)


def test_dragging_pans_and_does_not_select(view):
    before = corner(view, row(view, "x"))
    drag(view, [QPoint(300, 300), QPoint(330, 310), QPoint(360, 340)], NONE)
    assert np.abs(corner(view, row(view, "x")) - before - [60, 40]).max() < 1e-6
    assert view.selected_ops == ()


def test_a_fitted_graph_stays_fitted_when_the_window_shrinks(view):
    view.fit()
    view.resize(700, 500)
    assert view.canvas.shows_everything()


def channels(image):
    pixels = image.convertToFormat(QImage.Format.Format_RGB32)
    return np.frombuffer(pixels.constBits(), dtype=np.uint8).astype(int)


def areas_drawn(view, monkeypatch, action):
    """Areas in pixels that are drawn anew by an action."""
    areas, draw = [], view.canvas._draw_ground

    def noted(picture, exposed):
        left, top, right, bottom = exposed
        areas.append((right - left) * (bottom - top))
        draw(picture, exposed)

    monkeypatch.setattr(view.canvas, "_draw_ground", noted)
    action()
    view.canvas.repaint()
    return areas


def test_a_pan_draws_only_the_strips_that_come_into_the_window(view, monkeypatch):
    view.canvas.repaint()
    wide, tall = view.canvas.width(), view.canvas.height()
    assert areas_drawn(view, monkeypatch, lambda: view.canvas.pan(30.0, -20.0)) == [30 * tall, 20 * wide]


@pytest.mark.parametrize("step", [(30.0, 0.0), (-40.0, 25.0), (7.0, -9.0), (0.4, 0.0), (5000.0, 0.0)])
def test_a_panned_picture_is_the_same_as_one_drawn_anew(view, step):
    view.zoom_by(2.0)
    view.canvas.repaint()
    view.canvas.pan(*step)
    panned = channels(picture_of(view))
    view.canvas._draw_anew()
    # Edges of clipped strips may round differently by one of 255.
    assert np.abs(panned - channels(picture_of(view))).max() <= 2


@pytest.mark.parametrize(
    "change",
    [
        lambda view: view.set_selection(["act_1"]),
        lambda view: view.search("linear"),
        lambda view: view.set_filter(frozenset({0})),
        lambda view: view.zoom_by(1.1),
        lambda view: view.canvas.toggle(block(view, "layers")),
    ],
    ids=["selection", "search", "filter", "zoom", "open"],
)
def test_any_other_change_draws_everything_anew(view, monkeypatch, change):
    view.canvas.repaint()
    whole = view.canvas.width() * view.canvas.height()
    assert areas_drawn(view, monkeypatch, lambda: change(view)) == [whole]
