"""The status line during a job that reports nothing."""

from types import SimpleNamespace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton

from ace_studio.gui.panels import run as run_panel
from ace_studio.gui.shell import status_line
from ace_studio.records.messages import LogLine, Phase, Progress


def test_after_a_while_without_progress_it_says_that_the_job_still_works(desk, monkeypatch):
    desk.running()
    job = desk.engine.requests[-1].job
    line = desk.window.status_line
    now_s = 0.0
    monkeypatch.setattr(status_line, "time", SimpleNamespace(monotonic=lambda: now_s))
    desk.session.apply(Progress(job=job, phase=Phase.LOAD, detail="net.py"))
    desk.settle()
    now_s += 0.9 * status_line.TOLD_AFTER_S
    line._show_elapsed()
    assert line._what.text() == "Loading the model: net.py"
    now_s += 0.9 * status_line.TOLD_AFTER_S
    desk.session.apply(LogLine(job=job, text="a line is no progress"))
    desk.settle()
    line._show_elapsed()
    assert line._what.text().endswith("still working, nothing new for 4 min: wait or cancel")
    desk.session.apply(Progress(job=job, phase=Phase.LOAD, detail="weights"))
    desk.settle()
    line._show_elapsed()
    assert line._what.text() == "Loading the model: weights"


def test_a_job_has_one_button_that_cancels_it_and_its_bar_stays_where_it_is(desk, monkeypatch):
    desk.running()
    job = desk.engine.requests[-1].job
    line, run = desk.window.status_line, desk.panel("run")
    now_s = desk.document.activity.started_s
    clock = SimpleNamespace(monotonic=lambda: now_s)
    places = []
    for module in (status_line, run_panel):
        monkeypatch.setattr(module, "time", clock)
    for seconds in (1.0, 1000.0, 10000.0):
        now_s = desk.document.activity.started_s + seconds
        for shown in (line, run):
            shown._show_elapsed()
        desk.settle()
        places.append((line._bar.geometry(), run.progress.geometry()))
    assert len(set(map(str, places))) == 1
    named = [each for each in desk.window.findChildren(QAbstractButton) if "Cancel" in each.text()]
    (cancel,) = (each for each in named if each.isVisible())
    desk.bot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    assert desk.engine.cancelled == [job]
