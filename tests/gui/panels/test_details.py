"""The details panel: what is known of the selected op, to read, follow and copy."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication


def lines(panel):
    roots = [panel.tree.topLevelItem(at) for at in range(panel.tree.topLevelItemCount())]
    return {(root.child(at).text(0), root.child(at).text(1)): root.child(at) for root in roots
            for at in range(root.childCount())}  # fmt: skip


def test_a_selected_op_is_described_and_enter_on_an_input_goes_there(desk, compared_graph):
    panel = desk.panel("details")
    desk.session.view.select(("act_1",))
    desk.settle()
    shown = lines(panel)
    assert ("became", "fused into linear_1") in shown
    item = next(item for (name, _), item in shown.items() if name == "linear_1")
    panel.tree.setFocus()
    panel.tree.setCurrentItem(item)
    desk.bot.keyClick(panel.tree, Qt.Key.Key_Return)
    desk.settle()
    assert desk.document.selection.op_ids == ("linear_1",)
    assert panel.about.text() == "linear_1"


def test_lines_and_everything_can_be_copied(desk, compared_graph):
    panel = desk.panel("details")
    desk.session.view.select(("act_1",))
    desk.settle()
    panel.tree.setCurrentItem(lines(panel)["name", "act_1"])
    desk.bot.keyClick(panel.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "name\tact_1"
    desk.bot.mouseClick(panel.copy_button, Qt.MouseButton.LeftButton)
    assert "operator\taten.gelu.default" in QApplication.clipboard().text()


def test_a_folded_group_stays_folded_for_the_next_op(desk, compared_graph):
    panel = desk.panel("details")
    desk.session.view.select(("act_1",))
    desk.settle()
    panel.tree.topLevelItem(0).setExpanded(False)
    desk.session.view.select(("linear_1",))
    desk.settle()
    assert not panel.tree.topLevelItem(0).isExpanded()
    assert panel.tree.topLevelItem(1).isExpanded()
