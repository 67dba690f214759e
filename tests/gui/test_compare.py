"""The graph beside what really runs: one camera, one selection, the same blocks open, and fates in words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt

from ace_studio.gui.graph_view.tooltips import tooltip_of
from ace_studio.records.results import CaptureReport, OpSupport, SupportStatus, TargetSupport
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import show_result

TABLE = layered_table(3)


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
    desk.session.select_run(0)
    desk.settle()
    assert graph.compare.summary.text().startswith("onnxruntime")


def test_what_does_not_run_is_dimmed_and_says_where_it_went(desk, graph):
    picture = graph.compare.view.picture
    row = TABLE.op_id.index("act_0")
    assert picture.titles(row)[1] == "→ linear_0"
    assert "fused into linear_0" in tooltip_of(picture, row)
    hidden = {picture.colouring.categories[at] for at in picture.hidden_categories}
    assert hidden == {"fused", "folded"}
    assert graph.view.picture.hidden_categories == frozenset()


def test_opening_a_block_on_one_side_opens_it_on_the_other(desk, graph):
    first, second = graph.view, graph.compare.view
    first.close_everything()
    assert second.picture.arrangement.open_blocks() == first.picture.arrangement.open_blocks()
    second.open_block("layers.1.mlp")
    assert first.picture.arrangement.open_blocks() == second.picture.arrangement.open_blocks()
    assert first.picture.arrangement.is_open(first.picture.tree.block_of_path("layers.1.mlp"))


def test_both_views_look_at_the_same_place(desk, graph):
    first, second = graph.view.canvas, graph.compare.view.canvas
    second.zoom(1.7)
    second.pan(40, -25)
    middles = [canvas.camera.to_scene(canvas.width() / 2, canvas.height() / 2) for canvas in (first, second)]
    assert first.camera.scale == second.camera.scale
    assert middles[0] == pytest.approx(middles[1])


def test_an_op_selected_on_one_side_is_selected_on_the_other(desk, graph):
    graph.compare.view.select_rows([TABLE.op_id.index("linear_2")])
    desk.settle()
    assert graph.view.selected_ops == ("linear_2",)
    desk.session.select(["add_1"])
    desk.settle()
    assert graph.compare.view.selected_ops == ("add_1",)


def test_the_button_closes_it_again_and_it_costs_nothing_then(desk, graph):
    desk.bot.mouseClick(graph.compare_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert not graph.compare.isVisible()
    before = graph.compare.summary.text()
    desk.session.select_run(0)
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
    desk.session._change(capture=replace(desk.document.capture, support=(report,)))
    ops = desk.panel("ops")
    column = next(one for one in ops.model.columns if one.title == "not as it is in")
    assert column.values[TABLE.op_id.index("act_1")] == "executorch: written as five ops"
    assert column.values[TABLE.op_id.index("act_0")] == ""
