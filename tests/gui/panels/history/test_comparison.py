"""Two past runs side by side: their figures as differences, a chart of them, and the choices that differ."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from tests.gui.panels.history.past_runs import LEFT, click


def both(past):
    panel = past.panel("history")
    click(past, panel, 0)
    click(past, panel, 2, Qt.KeyboardModifier.ControlModifier)
    past.bot.mouseClick(panel.compare_button, LEFT)
    past.settle()
    return panel


def test_two_runs_are_compared_with_grey_for_no_difference_and_the_list_comes_back(past):
    panel = both(past)
    view = panel.comparison
    assert view.isVisible()
    assert [each.name for each in view.rows] == ["eager bf16", "openvino bf16"]
    assert view.tabs.tabText(1) == "Choices: the same"
    past.bot.mouseClick(next(each for each in view.findChildren(QPushButton) if "Back" in each.text()), LEFT)
    past.settle()
    assert panel.table.isVisible()
