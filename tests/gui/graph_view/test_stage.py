"""What a frame draws, and where."""

import numpy as np
import pytest

from ace_studio.gui.graph_layout.sizes import OP_HEIGHT
from ace_studio.gui.graph_view.camera import Camera
from ace_studio.gui.graph_view.colours import family_colouring
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.stage import Stage
from ace_studio.gui.graph_view.texts import TextCache
from ace_studio.gui.style.theme import DARK
from tests.gui.graph_tables import layered_table


@pytest.fixture
def stage():
    table = layered_table(3)
    picture = Picture(table, family_colouring(table, DARK))
    return Stage(painter=None, picture=picture, camera=Camera(), colours=DARK, texts=TextCache(), width=800, height=600)


def test_only_what_touches_the_window_is_drawn_and_an_export_draws_everything(stage):
    nodes = np.array(stage.picture.scene.boxes)
    assert len(stage.inside(nodes)) > 0
    stage.camera.dx = -1e6
    assert len(stage.inside(nodes)) == 0
    stage.culls = False
    assert len(stage.inside(nodes)) == len(nodes)


def test_rectangles_follow_the_camera(stage):
    node = np.array(stage.picture.scene.boxes[:1])
    before = stage.rects(node)[0]
    stage.camera = Camera(scale=2.0, dx=5.0)
    assert stage.rects(node)[0].tolist() == pytest.approx([2 * before[0] + 5.0, *(2 * before[1:])])
    assert stage.op_height == 2 * OP_HEIGHT
