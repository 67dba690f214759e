"""The ops panel: a table of every op, which filters and sorts at once."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtCore import Qt

from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import CaptureReport, OpSupport, SupportStatus, TargetSupport
from tests.gui.graph_tables import large_table
from tests.gui.run_results import TABLE


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
