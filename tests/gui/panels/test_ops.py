"""The ops panel: a table of every op, which filters and sorts at once."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt

from ace_studio.gui.ops.colourings import change_colours
from ace_studio.gui.panels.ops import difference_columns
from ace_studio.gui.style.theme import DARK
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import CaptureReport, OpReport, OpSupport, SupportStatus, TargetSupport
from ace_studio.session.comparison.graphs import OpChange
from ace_studio.session.comparison.sides import Pin, PinnedSide, compared_ops, comparison_of
from tests.gui.comparing import two_plans
from tests.gui.graph_tables import large_table, table_of
from tests.gui.run_results import REPORT, TABLE
from tests.session.fake_engine_link import result, target_run


def test_the_op_table_says_sensitivity_error_and_what_became_of_each_op(desk, compared_graph):
    ops = desk.panel("ops")
    columns = {column.title: column for column in ops.model.columns}
    row = TABLE.op_id.index("act_1")
    assert columns["became"].values[row] == "fused into linear_1"
    assert columns["sensitivity"].values[TABLE.op_id.index("stem_norm")] == 17.0
    assert columns["error"].values[row] == 60.0 - row


def test_the_op_table_names_the_targets_that_do_not_have_an_op_as_it_is(desk, compared_graph):
    op = OpSupport(id="act_1", op="aten.gelu.default", status=SupportStatus.DECOMPOSED, instead="written as five ops")
    report = TargetSupport(target="executorch", counts={"decomposed": 1}, ops=(op,))
    desk.session._state.change(capture=replace(desk.document.capture, support=(report,)))
    ops = desk.panel("ops")
    column = next(one for one in ops.model.columns if one.title == "unsupported in")
    assert column.values[TABLE.op_id.index("act_1")] == "executorch: written as five ops"
    assert column.values[TABLE.op_id.index("act_0")] == ""


def test_a_row_clicked_in_the_table_is_selected_in_the_graph(desk):
    ops = desk.traced().panel("ops")
    place = ops.table.visualRect(ops.model.index(2, 1)).center()
    desk.bot.mouseClick(ops.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    assert desk.document.selection.op_ids == (desk.document.graph.op_id[2],)
    assert desk.window.workbench.panel("graph").view.selected_ops == desk.document.selection.op_ids


def test_all_of_very_many_ops_are_selected_without_a_cell_being_asked_for_each(desk, monkeypatch):
    desk.captured(large_table(5_000), CaptureReport(rung="export", ops=5_000, seconds=1.0))
    ops = desk.panel("ops")
    asked = []
    count = ops.model.rowCount
    monkeypatch.setattr(ops.model, "rowCount", lambda *about: asked.append(1) or count(*about))
    desk.bot.keyClick(ops.table, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    desk.settle()
    assert desk.document.selection.op_ids == desk.document.graph.op_id
    desk.session.plan.set_precision_of_ops(desk.document.selection.op_ids, Precision.BF16)
    desk.settle()
    assert [rule.match for rule in desk.document.recipe.plan.rules] == ["module:*"]
    assert len(asked) < 5_000
    assert ops.model.index(40, 6).data() == "bf16"


def filtered(desk, words):
    """Ids of the ops that the filter leaves."""
    panel = desk.panel("ops")
    panel.filter.setText(words)
    while panel.model.prepare_filter():
        pass
    panel.filter.settled.emit()
    return tuple(panel.model.index(row, 1).data() for row in range(panel.model.rowCount()))


@pytest.mark.parametrize(
    "query",
    [
        "relu",
        "op:aten.relu",
        "aten.relu",
        "64x8x8",
        "module:classifier op:linear",
        "/relu_[0-2]/ dtype:f32",
        "time>10%",
        "precision:int8",
    ],
)
def test_the_filter_and_the_search_of_the_graph_find_the_same_ops(desk, query):
    desk.ran()
    found = desk.panel("graph").view.search(query)
    assert found
    assert set(found) <= set(filtered(desk, query))
    named = ":" in query or ">" in query
    assert not named or filtered(desk, query) == found


def test_the_filter_says_what_is_wrong_with_it_as_the_search_does(desk):
    desk.ran()
    panel, view = desk.panel("ops"), desk.panel("graph").view
    for query in ("/(/", "time>3parsec"):
        view.search(query)
        assert filtered(desk, query) == ()
        assert panel._count.text() == view.search_bar.count.text() != ""
    assert len(filtered(desk, "")) == len(desk.document.graph)
    assert "row" in panel._count.text()


def test_the_filter_finds_every_word_that_a_cell_shows(desk):
    desk.traced()
    desk.session.plan.set_rule("module:*.2", Precision.FP16)
    desk.settle()
    model = desk.panel("ops").model
    shown = [[each.text(value) for value in each.values] for each in model.columns]
    words = {word for column in shown for text in column for word in text.lower().split()}
    assert {"module:*.2", "fp16", "×"} <= words
    for word in words:
        rows = {at for column in shown for at, text in enumerate(column) if word in text.lower()}
        assert rows <= set(model.find(word, model._texts).nonzero()[0].tolist()), word


GRAPH = table_of([("x", "input", ""), ("conv2d", "aten.conv2d.default", "a"), ("relu", "aten.relu.default", "a")],
                 edges=[(0, 1), (1, 2)])  # fmt: skip


def report(op_id, actual, latency_ms):
    return OpReport(id=op_id, op="", module="", shape="", device="cpu", planned=actual, actual=actual,
                    latency_ms=latency_ms)  # fmt: skip


def test_every_op_has_a_b_and_their_difference_and_small_ones_are_grey():
    one, other = (
        replace(target_run("a"), ops=(report("conv2d", precision, 4.0), report("relu", "fp32", relu)))
        for precision, relu in (("fp32", 1.0), ("int8-static", 3.0))
    )
    sides = [PinnedSide(graph=GRAPH, result=result(run)) for run in (one, other)]
    found = comparison_of((Pin(name="a"), Pin(name="b")), (sides[0], sides[1]))
    columns = difference_columns(found, compared_ops(found, *found.partners(None)), DARK)
    by_title = {each.title: each for each in columns}
    difference = by_title["difference"]
    assert list(difference.values) == ["", "differs: precision", ""]
    marked = change_colours(DARK)[OpChange.PRECISION]
    assert [difference.swatch(row) for row in range(3)] == ["", marked, ""], "as the graph colours it"
    assert list(by_title["A: precision"].values)[1:] == ["fp32", "fp32"]
    assert list(by_title["B: precision"].values)[1:] == ["int8-static", "fp32"]
    change = next(each for each in columns if each.title == "B - A")
    assert list(change.values) == [None, 0.0, 2.0]
    assert (change.colour(1), change.colour(2)) == (DARK.text_dim, "")
    assert change.text(2.0) == "+2.000"


def test_the_table_names_the_op_of_an_onnx_file_beside_that_of_torch():
    file = replace(GRAPH, op_id=("x", "a_Conv", "Relu"), op=("input", "onnx.Conv", "onnx.Relu"))
    found = comparison_of((Pin(name="a"), Pin(name="b")), (PinnedSide(graph=file), PinnedSide(graph=GRAPH)))
    columns = {each.title: each for each in difference_columns(found, compared_ops(found, None, None), DARK)}
    assert list(columns["op in A"].values) == ["", "onnx.Conv  a_Conv", "onnx.Relu  Relu"]
    assert list(columns["op id"].values) == list(GRAPH.op_id)
    assert not any(columns["difference"].values)


def test_only_differences_hides_ops_that_are_the_same(desk):
    found = two_plans(desk)
    panel = desk.panel("ops")
    assert panel.model.rowCount() == len(found.merged.table)
    different = [text for text in panel.model.columns[1].values if text]
    panel.only_different.click()
    desk.bot.waitUntil(lambda: panel.model.rowCount() == len(different))
    desk.session.comparing.hide()
    desk.settle()
    desk.bot.waitUntil(lambda: panel.model.rowCount() == len(desk.document.graph))
    assert not panel.only_different.isVisible()


def test_the_selected_op_is_in_sight_when_the_table_is_seen_first(desk):
    desk.captured(large_table(5000), REPORT)
    desk.session.view.select([desk.document.graph.op_id[4000]])
    desk.do("show-ops")
    ops = desk.window.workbench.panel("ops")
    (row,) = ops.table.chosen.rows
    place = ops.table.visualRect(ops.model.index(row, 0))
    assert not place.isEmpty() and ops.table.viewport().rect().contains(place.center())
