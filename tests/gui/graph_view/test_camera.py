"""Which part of the scene a widget shows, and how large."""

import pytest

from ace_studio.gui.graph_view.camera import FIT_SCALE, MAX_SCALE, Camera


def test_a_place_goes_to_the_screen_and_back():
    camera = Camera(scale=2.0, dx=30.0, dy=-10.0)
    assert camera.to_screen(5.0, 7.0) == (40.0, 4.0)
    assert camera.to_scene(40.0, 4.0) == (5.0, 7.0)


def test_zooming_keeps_the_place_under_the_pointer_and_has_limits():
    camera = Camera(dx=20.0)
    under = camera.to_scene(100.0, 50.0)
    camera.zoom_at(100.0, 50.0, factor=2.0, least=0.1)
    assert camera.to_scene(100.0, 50.0) == pytest.approx(under)
    camera.zoom_at(100.0, 50.0, factor=1000.0, least=0.1)
    assert camera.scale == MAX_SCALE
    camera.zoom_at(100.0, 50.0, factor=1e-6, least=0.1)
    assert camera.scale == 0.1


def test_a_part_is_shown_in_the_middle_and_a_small_one_is_hardly_enlarged():
    camera = Camera()
    camera.show((0.0, 0.0, 4000.0, 100.0), 856.0, 600.0)
    assert camera.scale == pytest.approx(0.2)
    assert camera.to_screen(2000.0, 50.0) == pytest.approx((428.0, 300.0))
    camera.show((0.0, 0.0, 10.0, 10.0), 856.0, 600.0)
    assert camera.scale == FIT_SCALE


@pytest.mark.parametrize(
    ("bounds", "moved"), [((10, 50, 40, 80), (14, 0)), ((900, 50, 990, 80), (-14, 0)), ((100, 50, 200, 80), (0, 0))]
)
def test_scrolling_into_view_moves_no_more_than_needed(bounds, moved):
    camera = Camera()
    camera.nudge_into_view(bounds, 1000.0, 500.0, margin=24.0)
    assert (camera.dx, camera.dy) == moved
