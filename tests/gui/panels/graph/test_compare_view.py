"""The comparison: the graph that the selected run executes, beside the captured graph."""

import numpy as np
import pytest
from PySide6.QtCore import Qt

from ace_studio.gui.graph_view.colours import family_colouring
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.tooltips import tooltip_of
from ace_studio.gui.panels.graph.compare_view import CommonPlaces
from ace_studio.gui.style.theme import DARK
from ace_studio.session.document import EdgeChoice
from tests.gui.gestures import close_block, open_block
from tests.gui.graph_tables import layered_table, table_of
from tests.gui.run_results import TABLE, run_of


def open_paths(view):
    picture = view.picture
    return {picture.tree.paths[block - picture.tree.root] for block in np.flatnonzero(picture.arrangement._open)} - {""}


def test_the_second_view_counts_what_became_of_the_ops(desk, compared_graph):
    assert compared_graph.compare.isVisible()
    words = compared_graph.compare.summary.text()
    assert words.startswith("openvino: 11 ops became 7")
    assert "3 fused into others" in words
    assert "1 folded away" in words
    assert "as planned" in words and "at another precision than planned" in words
    desk.session.view.select_run(0)
    desk.settle()
    assert compared_graph.compare.summary.text().startswith("onnxruntime")


def test_what_does_not_run_is_not_there_and_the_first_view_says_where_it_went(desk, compared_graph):
    first, second = compared_graph.view.picture, compared_graph.compare.view.picture
    assert len(second.table) == len(TABLE) - 4
    assert "act_0" not in second.table.op_id
    row = TABLE.op_id.index("act_0")
    assert first.titles(row)[1] == "→ linear_0"
    assert "fused into linear_0" in tooltip_of(first, row)
    host = second.table.op_id.index("linear_0")
    assert second.titles(host)[1] == "+ gelu"
    assert "act_0 fused" in tooltip_of(second, host)
    desk.session.view.select(["act_0"])
    desk.settle()
    assert compared_graph.compare.view.selected_ops == ("linear_0",)
    assert compared_graph.compare.summary.text() == "act_0: fused into linear_0"


def test_another_run_brings_another_graph_and_closing_takes_the_words_away(desk, compared_graph):
    run = run_of(TABLE, "tensorrt", kept=TABLE.op_id)
    desk.session._state.change(runs=(*desk.document.runs, run), run_numbers=(0, 1, 2, 3))
    desk.session.view.select_run(3)
    desk.settle()
    assert len(compared_graph.compare.view.picture.table) == len(TABLE)
    desk.session.view.select_run(0)
    desk.settle()
    assert len(compared_graph.compare.view.picture.table) == len(TABLE) - 4
    row = TABLE.op_id.index("act_0")
    assert compared_graph.view.picture.note_of(row)
    desk.do("compare-graph")
    assert not compared_graph.view.picture.note_of(row)


def test_the_edges_that_are_looked_at_stand_out_on_both_sides(desk, compared_graph):
    edges = (("act_0", "add_0"), ("linear_0", "act_0"))
    desk.session.view.look_at_edges(EdgeChoice(edges=edges, words="of this test"))
    desk.settle()
    second = compared_graph.compare.view.picture
    ends = [second.table.op_id[row] for row in (*second.edges.source, *second.edges.target)]
    assert ends == ["linear_0", "add_0"]


def test_opening_a_block_on_one_side_opens_it_on_the_other(desk, compared_graph):
    first, second = compared_graph.view, compared_graph.compare.view
    first.canvas.close_everything()
    assert not open_paths(first) and not open_paths(second)
    open_block(second, "layers.1")
    assert open_paths(second) == open_paths(first) == {"layers", "layers.1"}
    # In the second view this module is one op, and no block.
    open_block(first, "layers.1.mlp")
    assert open_paths(second) == {"layers", "layers.1"}
    close_block(second, "layers.1")
    assert "layers.1" not in open_paths(first)


def test_both_views_look_at_the_same_place(desk, compared_graph):
    first, second = compared_graph.view.canvas, compared_graph.compare.view.canvas
    compared_graph.view.canvas.open_everything()
    for leader, follower in ((second, first), (first, second)):
        for op_id in ("linear_0", "add_1", "linear_2"):
            leader.zoom(3.0 / leader.camera.scale)
            leader.camera.center_on(*middle(leader, op_id), width=leader.width(), height=leader.height())
            leader.moved_from_outside()
            place = follower.camera.to_screen(*middle(follower, op_id))
            assert follower.camera.scale == leader.camera.scale
            assert place == pytest.approx((follower.width() / 2, follower.height() / 2), abs=25)


def middle(canvas, op_id):
    scene = canvas.picture.scene
    (row,) = canvas.picture.rows_of([op_id])
    return scene.x[row] + scene.width[row] / 2, scene.y[row] + scene.height[row] / 2


def test_a_fitted_graph_has_the_smaller_one_in_sight(desk, compared_graph):
    compared_graph.view.canvas.open_everything()
    desk.settle()
    assert compared_graph.view.canvas.shows_everything()
    assert compared_graph.compare.view.canvas.shows_everything()


def test_an_op_selected_on_one_side_is_selected_on_the_other(desk, compared_graph):
    second = compared_graph.compare.view
    second.canvas.select(second.picture.rows_of(["linear_2"]))
    desk.settle()
    # With it all that it does.
    assert compared_graph.view.selected_ops == ("linear_2", "act_2")
    assert second.selected_ops == ("linear_2",)
    desk.session.view.select(["add_1"])
    desk.settle()
    assert compared_graph.compare.view.selected_ops == ("add_1",)


def test_the_button_closes_it_again_and_it_costs_nothing_then(desk, compared_graph):
    desk.bot.mouseClick(compared_graph.compare_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert not compared_graph.compare.isVisible()
    before = compared_graph.compare.summary.text()
    desk.session.view.select_run(0)
    desk.settle()
    assert compared_graph.compare.summary.text() == before


def picture_of(table):
    return Picture(table, family_colouring(table, DARK))


def test_the_place_of_a_common_op_is_found_in_the_other_graph():
    whole, part = picture_of(layered_table(2)), picture_of(table_of([("stem_linear", "aten.linear.default", "stem")]))
    places = CommonPlaces(whole, part)
    here, there = places._look()
    assert places.other_place(*here[0], from_first=True) == pytest.approx(tuple(there[0]), abs=0.5)
    assert places.other_place(*there[0], from_first=False) == pytest.approx(tuple(here[0]), abs=0.5)


def test_without_common_ops_no_place_matches():
    first, second = picture_of(layered_table(1)), picture_of(table_of([("other", "aten.add.Tensor", "")]))
    places = CommonPlaces(first, second)
    assert places.other_place(0.0, 0.0, from_first=True) is None
    assert places.fits(first, second)
    assert not places.fits(second, first)
