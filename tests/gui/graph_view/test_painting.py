"""Draw one frame: the visible part, in as much detail as its size on the screen allows."""

import numpy as np
import pytest

from ace_studio.gui.graph_view.painting import bend
from tests.gui.graph_tables import large_table, table_of
from tests.gui.looking import colours_in, picture_of


@pytest.mark.parametrize("op_height", [1.0, 2.5, 4.0, 7.0, 12.0, 24.0, 60.0])
def test_every_level_of_detail_paints_the_boxes(view, op_height):
    view.canvas.open_everything()
    view.canvas.camera.scale = op_height / 46
    scene = view.picture.scene
    view.canvas.camera.center_on(
        scene.total_width / 2, scene.total_height / 2, width=view.canvas.width(), height=view.canvas.height()
    )
    view.set_filter(frozenset({0}))
    view.set_selection(["act_1"])
    assert len(colours_in(picture_of(view))) > 4


def test_blocks_that_form_a_cycle_are_painted(view):
    rows = [("a", "aten.add.Tensor", "p"), ("b", "aten.mul.Tensor", "q"), ("c", "aten.neg.default", "p")]
    rows += [("d", "aten.neg.default", "q")]
    view.show_graph(table_of(rows, edges=[(0, 1), (1, 2), (2, 3)]))
    view.canvas.close_everything()
    assert len(view.picture.scene.boxes) == 2
    assert len(colours_in(picture_of(view))) > 4


def test_ten_thousand_ops_are_built_and_painted_open_and_closed(view, laid_out):
    view.show_graph(large_table())
    laid_out(view)
    assert len(view.picture.scene.boxes) <= 60
    assert len(colours_in(picture_of(view))) > 4
    view.canvas.open_everything()
    laid_out(view)
    assert len(view.picture.scene.boxes) == len(view.picture.table) >= 10_000
    assert len(colours_in(picture_of(view))) > 4


def test_a_curve_joins_the_ends_of_its_edge_and_leaves_vertically():
    pieces = bend(np.array([[0.0, 0.0, 40.0, 100.0]]), 14)
    assert pieces.shape == (14, 4)
    assert pieces[0, :2].tolist() == [0.0, 0.0]
    assert pieces[-1, 2:].tolist() == pytest.approx([40.0, 100.0])
    assert abs(pieces[0, 2]) < abs(pieces[0, 3])
    assert np.allclose(pieces[1:, :2], pieces[:-1, 2:])
