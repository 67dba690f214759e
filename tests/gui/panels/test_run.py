"""The run panel: the phase, the steps so far, and the log."""

from __future__ import annotations

from PySide6.QtCore import Qt

from ace_studio.gui.shell.panel_table import PANELS
from ace_studio.records.messages import LogLine, RunRequest
from ace_studio.session.document import EngineState


def test_a_run_comes_to_the_front_and_then_its_results(desk):
    desk.traced()
    desk.engine.by_itself = False
    desk.do("run")
    assert desk.window.workbench.current(next(iter({row.place for row in PANELS if row.id == "run"}))) == "run"
    request = desk.engine.requests[-1]
    assert isinstance(request, RunRequest)
    desk.engine.answer(request)
    desk.bot.waitUntil(lambda: desk.window.workbench.panel("results").isVisible(), timeout=2000)
    assert desk.document.result is not None


def test_esc_cancels_what_is_going_on(desk):
    desk.traced()
    desk.engine.by_itself = False
    desk.do("run")
    desk.bot.keyClick(desk.window, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.engine.cancelled == [desk.engine.requests[-1].job]
    assert desk.document.activity.state is EngineState.CANCELLING


def test_a_flood_of_log_lines_is_shown_without_a_repaint_per_line(desk):
    run = desk.traced().panel("run")
    for number in range(3000):
        desk.session.apply(LogLine(text=f"line {number}"))
    desk.settle()
    lines = run.log.toPlainText().splitlines()
    assert lines[-1] == "line 2999"
    assert len(lines) == len(desk.document.log)
