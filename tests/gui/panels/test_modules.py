"""The modules panel: the tree of modules with ops, weights and FLOPs."""

from __future__ import annotations

from PySide6.QtCore import Qt


def test_a_module_clicked_in_the_tree_selects_its_ops(desk):
    modules = desk.traced().panel("modules")
    item = modules.tree.topLevelItem(0).child(1)
    place = modules.tree.visualItemRect(item).center()
    desk.bot.mouseClick(modules.tree.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    graph = desk.document.graph
    inside = [op for op, path in zip(graph.op_id, graph.module, strict=True) if path.startswith("classifier")]
    assert list(desk.document.selection.op_ids) == inside
