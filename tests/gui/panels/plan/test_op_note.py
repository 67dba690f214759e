"""The note on the selected op: its possible precisions, and which targets refuse the others, and why."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QTextDocumentFragment

from ace_studio.records.recipes.plan import Precision
from tests.gui.two_targets import place_of, unfold


def test_for_a_selected_op_it_is_said_which_target_refuses_what_and_why(desk, two_target_plan):
    tree = unfold(desk, two_target_plan, "layers", "layers.1", "layers.1.mlp")
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
    assert "planned at int8-dynamic, which no chosen target supports" in note.words.text()
    assert note.words.property("role") == "warn"
    # The other ops are products: nothing about them but what the targets cannot do at all.
    desk.session.view.select(("linear_1",))
    desk.settle()
    assert "int8-dynamic" in note.words.text()
    assert tree.tree.currentItem() is tree._op_items["linear_1"]
