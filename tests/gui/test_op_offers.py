"""What a single op can be: greyed with each target's reason, in the tree of the plan and in the graph's line."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QTextDocumentFragment
from PySide6.QtWidgets import QComboBox

from ace_studio.gui.ops.precision_offers import op_offers
from ace_studio.records.messages import TargetRefusals
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import CaptureReport
from tests.gui.graph_tables import large_table, layered_table

REPORT = CaptureReport(rung="export", ops=1, seconds=1.0)
REFUSALS = (
    TargetRefusals(target="onnxruntime", operators={"aten.gelu.default": {"int8-dynamic": "gelu is no product",
                                                                          "int8-static": "gelu has no 8-bit kernel"}}),
    TargetRefusals(target="openvino", operators={"aten.gelu.default": {"int8-dynamic": "only products"}}),
)  # fmt: skip


def two_targets(desk, table):
    desk.captured(table, REPORT)
    desk.engine.by_itself = True
    desk.session._queue.ended()
    desk.session.choices.set_targets(("onnxruntime", "openvino"))
    desk.session.plan.set_default_precision(Precision.FP32)
    reports = [
        one for event in desk.engine._recorded["environment"] if hasattr(event, "report") for one in [event.report]
    ]
    targets = tuple(
        replace(one, available=True, precisions={"fp8": f"{one.name} has no fp8"}) for one in reports[0].targets
    )
    desk.session._state.change(environment=replace(reports[0], targets=targets), refusals=REFUSALS)
    desk.window.resize(1400, 1000)
    return desk.panel("plan")


@pytest.fixture
def plan(desk):
    return two_targets(desk, layered_table(3))


def unfold(desk, plan, *paths):
    tree = plan.precision.modules
    for path in paths:
        tree._items[path].setExpanded(True)
    desk.settle()
    return tree


def place_of(desk, tree, item):
    tree.tree.scrollToItem(item)
    desk.settle()
    return tree.tree.visualItemRect(item)


def test_the_ops_of_a_module_are_listed_when_it_is_opened_and_are_ticked_by_a_click(desk, plan):
    tree = plan.precision.modules
    assert "act_1" not in tree._op_items
    unfold(desk, plan, "layers", "layers.1", "layers.1.mlp")
    item = tree._op_items["act_1"]
    box = place_of(desk, tree, item)
    desk.bot.mouseClick(tree.tree.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(box.left() + 10, box.center().y()))
    desk.settle()
    assert [(rule.match, str(rule.precision)) for rule in desk.document.recipe.plan.rules] == [
        ("id:act_1", "int8-static")
    ]
    assert item.checkState(0) is Qt.CheckState.Checked
    assert tree._items["layers.1.mlp"].checkState(0) is Qt.CheckState.PartiallyChecked
    desk.do("undo")
    assert item.checkState(0) is Qt.CheckState.Unchecked


def test_for_a_selected_op_it_is_said_which_target_refuses_what_and_why(desk, plan):
    tree = unfold(desk, plan, "layers", "layers.1", "layers.1.mlp")
    box = place_of(desk, tree, tree._op_items["act_1"])
    desk.bot.mouseClick(tree.tree.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(box.right() - 20, box.center().y()))
    desk.settle()
    assert desk.document.selection.op_ids == ("act_1",)
    note = tree.about_ops
    assert note.isVisible()
    possible = note.words.text()
    assert possible.startswith("act_1: ")
    assert "int8-static" in possible
    assert "int8-dynamic" not in possible
    desk.bot.mouseClick(note.why, Qt.MouseButton.LeftButton)
    assert note.reasons.isVisible()
    words = QTextDocumentFragment.fromHtml(note.reasons.text()).toPlainText().split("\n")
    assert words == [
        "int8-dynamic", "onnxruntime: gelu is no product", "openvino: only products",
        "fp8", "onnxruntime: onnxruntime has no fp8", "openvino: openvino has no fp8",
        "int8-static: other targets can", "onnxruntime: gelu has no 8-bit kernel",
    ]  # fmt: skip
    assert note.words.property("role") == "dim"
    desk.session.plan.set_precision_of_ops(("act_1",), Precision.INT8_DYNAMIC)
    desk.settle()
    assert "planned at int8-dynamic, which none of its targets does" in note.words.text()
    assert note.words.property("role") == "warn"
    # The other ops are products: nothing about them but what the targets cannot do at all.
    desk.session.view.select(("linear_1",))
    desk.settle()
    assert "int8-dynamic" in note.words.text()
    assert tree.tree.currentItem() is tree._op_items["linear_1"]


def test_the_list_of_an_op_greys_what_no_target_does_for_it_with_the_reasons(desk, plan):
    tree = unfold(desk, plan, "layers", "layers.1", "layers.1.mlp")
    tree.tree.setFocus()
    for op_id, possible in (("act_1", False), ("linear_1", True)):
        tree.tree.setCurrentItem(tree._op_items[op_id], 1)
        desk.bot.keyClick(tree.tree, Qt.Key.Key_F2)
        combo = tree.tree.findChild(QComboBox)
        item = combo.model().item(combo.findText("int8-dynamic"))
        assert item.isEnabled() is possible
        assert ("onnxruntime: gelu is no product" in item.toolTip()) is not possible
        tree.tree.closeEditor(combo, tree.tree.itemDelegate().EndEditHint.NoHint)
        combo.setParent(None)
        desk.settle()


def test_the_line_above_the_graph_greys_it_for_the_selected_ops_only(desk, plan):
    graph = desk.window.workbench.panel("graph")
    for op_ids, possible in ((("act_1",), False), (("act_1", "linear_1"), True), (("linear_1",), True)):
        desk.session.view.select(op_ids)
        desk.settle()
        item = graph.precision.model().item(graph.precision.findData("int8-dynamic"))
        assert item.isEnabled() is possible
        assert not graph.precision.model().item(graph.precision.findData("fp8")).isEnabled()


def test_a_target_that_is_not_chosen_has_no_say(desk, plan):
    desk.session.choices.set_targets(("inductor",))
    assert op_offers(desk.document, ("act_1",))["int8-dynamic"].is_possible


def test_selecting_an_op_and_turning_the_plan_at_two_thousand_ops_stay_cheap(desk):
    plan = two_targets(desk, large_table(2000))
    tree = plan.precision.modules
    tree.tree.expandAll()
    desk.settle()
    assert len(tree._op_items) == desk.document.graph.op_count
    turns, selections = [], []
    ids = list(tree._op_items)
    for at in range(4):
        desk.session.view.select((ids[at * 7],))
        start = time.process_time()
        plan.update_from(desk.document)
        selections.append(time.process_time() - start)
        desk.session.plan.set_precision_of_module(f"stage0.block.{at}", Precision.INT8_STATIC)
        start = time.process_time()
        plan.update_from(desk.document)
        turns.append(time.process_time() - start)
    assert min(selections) < 0.005
    assert min(turns) < 0.05
