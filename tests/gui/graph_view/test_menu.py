"""The context menu of the graph: one row per entry."""

from ace_studio.gui.graph_view.menu import fill_menu
from tests.gui.looking import block, row


def test_the_menu_offers_what_fits_the_node(view):
    def titles(node):
        return [action.text() for action in fill_menu(view, node).actions()]

    assert "Open" in titles(block(view, "layers"))
    assert "Open" not in titles(row(view, "x"))
    assert "Copy op id" in titles(row(view, "x"))
    assert titles(-1) == ["Open all blocks", "Close all blocks", "Show everything"]
    view.set_selection(["x", "act_1"])
    assert "Show the path between the two selected ops" in titles(-1)
