"""The tree of modules and ops with check boxes: what is compressed, and at which precision."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt

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


def test_ticks_are_shown_but_not_offered_while_the_goal_chooses(desk, layered_plan):
    desk.session.plan.set_plan_from_goal(True)
    desk.settle()
    assert not item_of(layered_plan, "stem").flags() & Qt.ItemFlag.ItemIsUserCheckable
    assert "goal" in layered_plan.precision.modules._note.text()
