"""The graph beside what really runs: one camera, one selection, the same blocks open, and fates in words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt

from ace_studio.gui.graph_view.tooltips import tooltip_of
from ace_studio.records.results import CaptureReport, OpSupport, SupportStatus, TargetSupport
from ace_studio.session.document import EdgeChoice
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import run_of, show_result

TABLE = layered_table(3)


def open_paths(view):
    picture = view.picture
    return {picture.tree.paths[block - picture.tree.root] for block in picture.arrangement.open_blocks()} - {""}


@pytest.fixture
def graph(desk):
    desk.window.resize(1600, 1000)
    desk.captured(TABLE, CaptureReport(rung="export", ops=1, seconds=1.0))
    panel = desk.window.workbench.panel("graph")
    show_result(desk, TABLE)
    desk.do("compare-graph")
    return panel


def test_the_second_view_counts_what_became_of_the_ops(desk, graph):
    assert graph.compare.isVisible()
    words = graph.compare.summary.text()
    assert words.startswith("openvino: 11 ops became 7")
    assert "3 fused into others" in words
    assert "1 folded away" in words
    desk.session.view.select_run(0)
    desk.settle()
    assert graph.compare.summary.text().startswith("onnxruntime")


def test_what_does_not_run_is_not_there_and_the_first_view_says_where_it_went(desk, graph):
    first, second = graph.view.picture, graph.compare.view.picture
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
    assert graph.compare.view.selected_ops == ("linear_0",)
    assert graph.compare.summary.text() == "act_0: fused into linear_0"


def test_another_run_brings_another_graph_and_closing_takes_the_words_away(desk, graph):
    run = run_of(TABLE, "tensorrt", kept=TABLE.op_id)
    desk.session._state.change(runs=(*desk.document.runs, run), run_numbers=(0, 1, 2, 3))
    desk.session.view.select_run(3)
    desk.settle()
    assert len(graph.compare.view.picture.table) == len(TABLE)
    desk.session.view.select_run(0)
    desk.settle()
    assert len(graph.compare.view.picture.table) == len(TABLE) - 4
    row = TABLE.op_id.index("act_0")
    assert graph.view.picture.note_of(row)
    desk.do("compare-graph")
    assert not graph.view.picture.note_of(row)


def test_the_edges_that_are_looked_at_stand_out_on_both_sides(desk, graph):
    edges = (("act_0", "add_0"), ("linear_0", "act_0"))
    desk.session.view.look_at_edges(EdgeChoice(edges=edges, words="of this test"))
    desk.settle()
    second = graph.compare.view.picture
    ends = [second.table.op_id[row] for row in (*second.edges.source, *second.edges.target)]
    assert ends == ["linear_0", "add_0"]


def test_opening_a_block_on_one_side_opens_it_on_the_other(desk, graph):
    first, second = graph.view, graph.compare.view
    first.canvas.close_everything()
    assert not open_paths(first) and not open_paths(second)
    second.open_block("layers.1")
    assert open_paths(second) == open_paths(first) == {"layers", "layers.1"}
    # In the second view this module is one op, and no block.
    first.open_block("layers.1.mlp")
    assert open_paths(second) == {"layers", "layers.1"}
    second.close_block("layers.1")
    assert "layers.1" not in open_paths(first)


def test_both_views_look_at_the_same_place(desk, graph):
    first, second = graph.view.canvas, graph.compare.view.canvas
    graph.view.canvas.open_everything()
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


def test_a_fitted_graph_has_the_smaller_one_in_sight(desk, graph):
    graph.view.canvas.open_everything()
    desk.settle()
    assert graph.view.canvas.shows_everything()
    assert graph.compare.view.canvas.shows_everything()


def test_an_op_selected_on_one_side_is_selected_on_the_other(desk, graph):
    second = graph.compare.view
    second.select_rows(second.picture.rows_of(["linear_2"]))
    desk.settle()
    # With it all that it does.
    assert graph.view.selected_ops == ("linear_2", "act_2")
    assert second.selected_ops == ("linear_2",)
    desk.session.view.select(["add_1"])
    desk.settle()
    assert graph.compare.view.selected_ops == ("add_1",)


def test_the_button_closes_it_again_and_it_costs_nothing_then(desk, graph):
    desk.bot.mouseClick(graph.compare_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert not graph.compare.isVisible()
    before = graph.compare.summary.text()
    desk.session.view.select_run(0)
    desk.settle()
    assert graph.compare.summary.text() == before


def test_the_graph_is_coloured_by_sensitivity_by_error_and_by_fate_with_a_legend_that_filters(desk, graph):
    view = graph.view
    for choice, op_id, words in (
        ("sensitivity", "stem_linear", "10 - 20 dB"),
        ("error", "linear_0", "40 - 60 dB"),
        ("fate", "linear_1", "at another precision"),
    ):
        graph.show_colouring(choice)
        desk.settle()
        picture = view.picture
        at = picture.category[TABLE.op_id.index(op_id)]
        assert picture.colouring.categories[at] == words
        assert picture.colouring.letters[at]
    at = graph.view.picture.colouring.categories.index("fused")
    desk.bot.mouseClick(view.legend.entries[at], Qt.MouseButton.LeftButton)
    assert view.picture.hidden_categories == {at}


def test_the_op_table_says_sensitivity_error_and_what_became_of_each_op(desk, graph):
    ops = desk.panel("ops")
    columns = {column.title: column for column in ops.model.columns}
    row = TABLE.op_id.index("act_1")
    assert columns["became"].values[row] == "fused into linear_1"
    assert columns["sensitivity"].values[TABLE.op_id.index("stem_norm")] == 17.0
    assert columns["error"].values[row] == 60.0 - row


def test_the_op_table_names_the_targets_that_do_not_have_an_op_as_it_is(desk, graph):
    op = OpSupport(id="act_1", op="aten.gelu.default", status=SupportStatus.DECOMPOSED, instead="written as five ops")
    report = TargetSupport(target="executorch", counts={"decomposed": 1}, ops=(op,))
    desk.session._state.change(capture=replace(desk.document.capture, support=(report,)))
    ops = desk.panel("ops")
    column = next(one for one in ops.model.columns if one.title == "not as it is in")
    assert column.values[TABLE.op_id.index("act_1")] == "executorch: written as five ops"
    assert column.values[TABLE.op_id.index("act_0")] == ""
