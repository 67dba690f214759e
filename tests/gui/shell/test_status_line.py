"""The status line during a job that reports nothing."""

from __future__ import annotations

from types import SimpleNamespace

from ace_studio.gui.shell import status_line
from ace_studio.records.messages import LogLine, Phase, Progress


def test_after_a_while_without_progress_it_says_that_the_job_still_works(desk, monkeypatch):
    desk.traced()
    desk.engine.by_itself = False
    desk.do("run")
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
    desk.session.apply(LogLine(job=job, text="a line is no progress", stream="stdout"))
    desk.settle()
    line._show_elapsed()
    assert line._what.text().endswith("still working, nothing new for 4 min: wait or cancel")
    assert line.cancel_button.isVisible()
    desk.session.apply(Progress(job=job, phase=Phase.LOAD, detail="weights"))
    desk.settle()
    line._show_elapsed()
    assert line._what.text() == "Loading the model: weights"
