"""The line of steps: one button stands out, and it takes the step."""

from __future__ import annotations

from PySide6.QtCore import Qt


def test_the_next_step_stands_out_and_a_click_takes_it(desk):
    line = desk.window.step_line
    assert not line.isVisible()
    desk.open_example()
    assert line.buttons["trust"].property("role") == "primary"
    assert not line.buttons["run"].isEnabled()
    desk.bot.mouseClick(line.buttons["trust"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert line.buttons["run"].property("role") == "primary"
    assert line.buttons["trust"].accessibleName().startswith("Trust: done")
