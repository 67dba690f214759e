"""The tree of modules and ops with check boxes: what is compressed, and at which precision."""

from PySide6.QtCore import QPoint, Qt

from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import CaptureReport
from tests.gui.graph_tables import large_table, table_of
from tests.gui.planning import item_of, rules
from tests.gui.two_targets import place_of, unfold


def test_the_ops_of_a_module_are_listed_when_it_is_opened_and_are_ticked_by_a_click(desk, two_target_plan):
    tree = two_target_plan.precision.modules
    assert "act_1" not in tree._op_items
    unfold(desk, two_target_plan, "layers", "layers.1", "layers.1.mlp")
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


def click_box(desk, layered_plan, path):
    """Click the tick of a module, as a mouse does."""
    tree, item = layered_plan.precision.modules.tree, item_of(layered_plan, path)
    parent = item.parent()
    while parent is not None:
        parent.setExpanded(True)
        parent = parent.parent()
    tree.scrollToItem(item)
    desk.settle()
    box = tree.visualItemRect(item)
    desk.bot.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(box.left() + 10, box.center().y()))
    desk.settle()


def test_a_click_on_the_tick_of_a_module_compresses_it_and_undo_takes_that_back(desk, layered_plan):
    click_box(desk, layered_plan, "layers.1")
    assert rules(desk) == [("module:layers.1", "int8-static")]
    assert item_of(layered_plan, "layers.1.mlp").checkState(0) is Qt.CheckState.Checked
    assert item_of(layered_plan, "layers").checkState(0) is Qt.CheckState.PartiallyChecked
    assert item_of(layered_plan, "layers").text(1) == "mixed"
    desk.do("undo")
    assert rules(desk) == []
    assert item_of(layered_plan, "layers").checkState(0) is Qt.CheckState.Unchecked


def test_new_ticks_get_the_low_precision_of_the_plan_until_another_one_is_chosen(desk, layered_plan):
    ticks, plan = layered_plan.precision.modules.ticks, desk.session.plan
    assert ticks.currentData() == "int8-static"
    plan.set_default_precision(Precision.INT8_DYNAMIC)
    desk.settle()
    assert ticks.currentData() == "int8-dynamic"
    click_box(desk, layered_plan, "layers.1")
    click_box(desk, layered_plan, "layers.1")
    assert item_of(layered_plan, "layers.1").text(1) == "int8-dynamic"
    ticks.setCurrentIndex(ticks.findData("fp16"))
    ticks.activated.emit(ticks.currentIndex())
    plan.set_default_precision(Precision.BF16)
    desk.settle()
    assert ticks.currentData() == "fp16"


def test_a_dash_becomes_a_tick_and_a_tick_becomes_nothing(desk, layered_plan):
    click_box(desk, layered_plan, "layers.1")
    click_box(desk, layered_plan, "layers")
    assert rules(desk) == [("module:layers", "int8-static")]
    click_box(desk, layered_plan, "layers")
    assert rules(desk) == []


def test_a_tick_is_set_by_the_space_key_too(desk, layered_plan):
    tree = layered_plan.precision.modules.tree
    tree.setFocus()
    tree.setCurrentItem(item_of(layered_plan, "stem"))
    desk.bot.keyClick(tree, Qt.Key.Key_Space)
    desk.settle()
    assert rules(desk) == [("module:stem", "int8-static")]


def test_ticks_are_not_offered_while_the_goal_chooses_and_not_shown_until_it_has(desk, layered_plan):
    desk.session.plan.set_plan_from_goal(True)
    desk.settle()
    for path in ("", "stem", "layers"):
        item = item_of(layered_plan, path)
        assert not item.flags() & Qt.ItemFlag.ItemIsUserCheckable
        assert item.data(0, Qt.ItemDataRole.CheckStateRole) is None
        assert item.text(1) == ""
    assert "by hand" in layered_plan.precision.modules._note.text()
    desk.session.plan.set_plan_from_goal(False)
    desk.settle()
    assert item_of(layered_plan, "stem").checkState(0) is Qt.CheckState.Unchecked


def test_a_module_of_very_many_ops_lists_them_in_parts(desk):
    table = table_of([(f"op_{at}", "aten.add.Tensor", "") for at in range(1_200)])
    desk.captured(table, CaptureReport(rung="export", ops=1_200, seconds=1.0))
    modules = desk.panel("plan").precision.modules
    root = modules.tree.topLevelItem(0)
    assert root.childCount() == 501
    assert root.child(500).text(0) == "… 700 more ops"
    modules.tree.setFocus()
    modules.tree.setCurrentItem(root.child(499))
    desk.bot.keyClick(modules.tree, Qt.Key.Key_Down)
    assert root.childCount() == 1_001
    assert modules.tree.currentItem().text(0) == "op_500"
    assert modules.tree.currentItem().text(1) == "int8-static"


def test_modules_inside_are_listed_when_their_module_is_opened(desk):
    desk.captured(large_table(5_000), CaptureReport(rung="export", ops=5_000, seconds=1.0))
    modules = desk.panel("plan").precision.modules
    assert len(modules._items) < 10
    item = modules.tree.topLevelItem(0).child(0)
    item.setExpanded(True)
    desk.settle()
    block = item.child(0)
    block.setExpanded(True)
    assert block.child(0).text(1) == "int8-static"
    assert block.child(0).checkState(0) is Qt.CheckState.Checked
