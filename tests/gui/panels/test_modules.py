"""The modules panel: the tree of modules with ops, weights and FLOPs."""

from PySide6.QtCore import Qt

from ace_studio.gui.panels.modules import _PATH as PATH
from ace_studio.records.results import CaptureReport
from tests.gui.graph_tables import large_table


def test_a_module_clicked_in_the_tree_selects_its_ops(desk):
    modules = desk.traced().panel("modules")
    item = modules.tree.topLevelItem(0).child(1)
    place = modules.tree.visualItemRect(item).center()
    desk.bot.mouseClick(modules.tree.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    graph = desk.document.graph
    inside = [op for op, path in zip(graph.op_id, graph.module, strict=True) if path.startswith("classifier")]
    assert list(desk.document.selection.op_ids) == inside


def test_modules_are_listed_when_they_are_opened_or_an_op_in_them_is_selected(desk):
    desk.captured(large_table(3000), CaptureReport(rung="export", ops=3000, seconds=1.0))
    modules = desk.panel("modules")
    assert len(modules._items) < 10
    op_id = next(
        name
        for name, path in zip(desk.document.graph.op_id, desk.document.graph.module, strict=True)
        if path.count(".") == 3
    )
    desk.session.view.select([op_id])
    desk.settle()
    assert [item.data(0, PATH) for item in modules.tree.selectedItems()] == [
        desk.document.graph.module[desk.document.graph.op_id.index(op_id)]
    ]
