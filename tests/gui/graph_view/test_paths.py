"""Paths between two ops along the edges of the graph."""

from ace_studio.gui.graph_view.menu import fill_menu
from tests.gui.looking import row


def test_the_path_between_two_ops_follows_the_edges_in_either_order(view):
    forward = view.canvas.show_path("x", "act_1")
    assert forward[0] == "x"
    assert forward[-1] == "act_1"
    assert view.canvas.show_path("act_1", "x") == forward
    assert set(view.selected_ops) == set(forward)
    assert view.canvas.show_path("x", "mask") == ()


def test_everything_an_op_depends_on_and_everything_that_depends_on_it_can_be_selected(view):
    menu_at(view, "linear_0", "Select everything this depends on")
    assert set(view.selected_ops) == {"x", "stem_linear", "stem_norm", "linear_0"}
    menu_at(view, "add_3", "Select everything that depends on this")
    assert set(view.selected_ops) == {"add_3", "linear_4", "act_4", "add_4", "output"}


def menu_at(view, op_id, title):
    menu = fill_menu(view.canvas, row(view, op_id))
    next(action for action in menu.actions() if action.text() == title).trigger()
