"""Cells in which a precision is chosen from a list."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox

from tests.gui.planning import item_of, rules
from tests.gui.two_targets import unfold


def test_the_list_of_an_op_greys_what_no_target_does_for_it_with_the_reasons(desk, two_target_plan):
    tree = unfold(desk, two_target_plan, "layers", "layers.1", "layers.1.mlp")
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


def test_f2_in_the_precision_of_a_module_opens_a_list_to_choose_from(desk, layered_plan):
    tree = layered_plan.precision.modules.tree
    tree.setFocus()
    tree.setCurrentItem(item_of(layered_plan, "stem"), 1)
    desk.bot.keyClick(tree, Qt.Key.Key_F2)
    combo = tree.findChild(QComboBox)
    assert combo.accessibleName()
    combo.setCurrentIndex(combo.findText("bf16"))
    combo.activated.emit(combo.currentIndex())
    desk.settle()
    assert rules(desk) == [("module:stem", "bf16")]
    assert item_of(layered_plan, "stem").text(1) == "bf16"
