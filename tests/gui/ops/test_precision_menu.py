"""Precisions in context menus: for the selected ops, for all ops of their kind, and for whole modules."""

from PySide6.QtCore import QPoint

from tests.gui.gestures import open_block
from tests.gui.planning import rules, trigger


def test_the_context_menu_of_the_op_table_sets_the_precision_of_every_op_of_a_kind(desk, layered_plan):
    ops = desk.panel("ops")
    desk.session.view.select(["linear_0"])
    desk.settle()
    menu = ops.menu()
    titles = {action.text(): action.menu() for action in menu.actions() if action.menu()}
    assert list(titles) == [
        "Precision of linear_0",
        "Precision of every linear",
        "Precision of every op in Block",
        "Precision of module layers.0.mlp",
    ]
    trigger(titles["Precision of every linear"], "bf16")
    trigger(titles["Precision of module layers.0.mlp"], "fp32")
    menu.deleteLater()
    desk.settle()
    assert rules(desk) == [("op:aten.linear.default", "bf16"), ("module:layers.0.mlp", "fp32")]


def test_the_context_menu_of_the_graph_is_about_the_block_under_the_pointer(desk, layered_plan):
    view = desk.window.workbench.panel("graph").view
    picture = view.picture
    block = picture.tree.block_of_path("layers.1")
    open_block(view, "layers")
    x, y = view.canvas.camera.to_screen(float(picture.scene.x[block]), float(picture.scene.y[block]))
    menu = view.menu_at(QPoint(round(x) + 4, round(y) + 4))
    titles = {action.text(): action.menu() for action in menu.actions() if action.menu()}
    trigger(titles["Precision of 3 ops"], "bf16")
    menu.deleteLater()
    assert rules(desk) == [("module:layers.1", "bf16")]


def first_op(desk):
    graph = desk.document.graph
    return graph.op_id[next(iter(graph.op_rows()))]


def test_while_a_past_run_is_shown_no_menu_offers_to_change_its_precisions_and_each_says_why(desk):
    why = "A past run is open, which nothing can change"
    desk.ran()
    ops, graph = desk.panel("ops"), desk.window.workbench.panel("graph")
    desk.session.history.load_history()
    desk.session.history.look_at_run(desk.document.history[0].id)
    desk.session.view.select([first_op(desk)])
    desk.settle()
    menu = ops.menu()
    offered = [(action.isEnabled(), action.toolTip()) for action in menu.actions() if action.menu()]
    assert offered and set(offered) == {(False, why)}
    menu.deleteLater()
    assert graph.precision.isVisible() and not graph.precision.isEnabled() and graph.precision.toolTip() == why
    action = desk.window.actions_.by_id["precision-bf16"]
    assert not action.isEnabled()
    desk.session.history.leave_past_run()
    desk.session.view.select([first_op(desk)])
    desk.settle()
    assert graph.precision.isEnabled() and action.isEnabled()
