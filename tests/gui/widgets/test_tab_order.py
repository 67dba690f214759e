"""The order in which Tab goes through a window: as one reads it, whatever the order in which its parts were made."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from ace_studio.gui.widgets.tab_order import tab_stops


def walk(desk, key):
    """The widgets that Tab reaches, until it comes back to the first."""
    found = [QApplication.focusWidget()]
    while len(found) < 200:
        desk.bot.keyClick(QApplication.focusWidget(), key)
        if QApplication.focusWidget() is found[0]:
            return found
        found.append(QApplication.focusWidget())
    raise AssertionError("Tab never comes back")


@pytest.mark.parametrize("panel_id", ["run", "source", "shapes"])
def test_tab_reaches_everything_that_backtab_reaches_in_the_opposite_order(desk, panel_id):
    desk.ran()
    panel = desk.panel(panel_id)
    desk.window.activateWindow()
    first = desk.window.workbench.panel("graph").colour_by
    first.setFocus()
    desk.bot.waitUntil(first.hasFocus)
    forward = walk(desk, Qt.Key.Key_Tab)
    back = walk(desk, Qt.Key.Key_Backtab)
    assert forward == [back[0], *reversed(back[1:])]
    assert set(tab_stops(panel)) <= set(forward)


def test_tab_goes_through_the_choices_then_the_graph_then_the_findings(desk):
    desk.traced()
    desk.panel("source")
    names = [one.accessibleName() for one in tab_stops(desk.window)]
    order = ["Colour by", "Compare with what really runs", "Search ops", "Graph of DigitNet", "Findings: panels"]
    assert [name for name in names if name in order] == order
    assert all(one.isVisible() for one in tab_stops(desk.window))


def test_from_a_button_that_is_disabled_the_keyboard_goes_to_its_neighbour(desk):
    desk.ran()
    panel = desk.panel("results")
    stops = tab_stops(panel)
    here, neighbour = stops[-2:]
    desk.window.activateWindow()
    here.setFocus()
    desk.bot.waitUntil(here.hasFocus)
    here.setEnabled(False)
    assert QApplication.focusWidget() is neighbour, "not the first stop of the window"
