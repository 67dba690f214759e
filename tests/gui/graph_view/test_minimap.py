"""The map: the whole graph in a corner, with the visible part marked; a click goes there."""

from PySide6.QtCore import QPoint
from PySide6.QtTest import QTest

from tests.gui.looking import LEFT, NONE, middle


def test_a_found_op_is_not_hidden_under_map_or_legend(view):
    view.canvas.open_everything()
    view.zoom_by(1.2 / view.canvas.camera.scale)
    view.search("add")
    for _ in range(5):
        view.search_next()
        place = middle(view, view.canvas.current)
        assert not view.minimap.geometry().contains(place)
        assert not view.legend.geometry().contains(place)


def test_a_click_on_the_map_goes_there(view):
    view.canvas.open_everything()
    view.zoom_by(6.0)
    assert view.minimap.isVisible()
    QTest.mousePress(view.minimap, LEFT, NONE, QPoint(view.minimap.width() // 2, 20))
    upper = view.canvas.camera.to_scene(0, view.canvas.height() / 2)[1]
    QTest.mousePress(view.minimap, LEFT, NONE, QPoint(view.minimap.width() // 2, 110))
    assert view.canvas.camera.to_scene(0, view.canvas.height() / 2)[1] > upper


def test_the_map_is_hidden_where_everything_is_in_sight_or_there_is_no_room(view):
    view.fit()
    assert not view.minimap.isVisible()
    view.zoom_by(5.0)
    view.resize(400, 400)
    assert not view.minimap.isVisible()
