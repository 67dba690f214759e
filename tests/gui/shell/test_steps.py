"""The line of steps: one button stands out, and it takes the step."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QToolButton


def places(line):
    return {step: made.geometry() for step, made in line.buttons.items()}


def test_no_step_moves_when_one_is_done(desk):
    desk.open_example()
    before = places(desk.window.step_line)
    desk.session.trust.trust_file()
    desk.settle()
    assert places(desk.window.step_line) == before
    desk.do("trace")
    desk.do("run")
    assert places(desk.window.step_line) == before
    assert desk.window.step_line._sentence.x() > max(place.right() for place in before.values())


@pytest.mark.parametrize("width", [820, 900, 1000, 1100])
def test_no_step_moves_in_a_narrow_window_when_the_sentence_changes(desk, width):
    desk.open_example()
    desk.session.trust.trust_file()
    desk.window.resize(width, 700)
    desk.settle()
    desk.engine.by_itself = False
    before = places(desk.window.step_line)
    desk.bot.mouseClick(desk.window.step_line.buttons["run"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.activity.is_working
    assert places(desk.window.step_line) == before


def test_before_the_first_trace_one_button_alone_stands_out(desk):
    def outstanding():
        window = desk.window
        found = [*window.findChildren(QPushButton), *window.findChildren(QToolButton)]
        return [each.text() for each in found if each.isVisible() and each.property("role") == "primary"]

    desk.open_example()
    assert [text.strip() for text in outstanding()] == ["Trust"]
    desk.session.trust.trust_file()
    for panel in ("graph", "shapes", "run", "results", "plan"):
        desk.panel(panel)
        assert outstanding() == ["Run"], panel


def test_a_click_on_the_step_that_goes_on_shows_it_and_starts_nothing(desk):
    desk.running()
    desk.panel("plan")
    sent = len(desk.engine.requests)
    desk.bot.mouseClick(desk.window.step_line.buttons["run"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.window.workbench.panel("run").isVisible()
    assert len(desk.engine.requests) == sent and len(desk.document.queue) <= 1


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
