"""The bound of one axis beside the trade-off: a box that switches it, and its number."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from tests.gui.charting import open_chart


def test_a_line_is_set_by_the_keyboard_too_and_begins_at_the_chosen_run(desk, charts):
    view = open_chart(desk, charts, "trade-off")
    view.cost_line.check.setFocus()
    desk.bot.keyClick(view.cost_line.check, Qt.Key.Key_Space)
    desk.settle()
    assert desk.document.recipe.goal.max_latency_ratio == pytest.approx(0.4)
    assert view.lines["x"].value() == pytest.approx(4.0)
    view.cost_line.number.setValue(0.25)
    desk.settle()
    assert view.lines["x"].value() == pytest.approx(2.5)
