"""One model over time: a figure of its chosen runs, from the first to the newest."""

from __future__ import annotations

from tests.gui.panels.history.past_runs import click


def test_the_runs_of_one_model_are_drawn_as_a_line(past):
    panel = past.panel("history")
    click(past, panel, 0)
    panel.time_action.trigger()
    past.settle()
    assert [run.title for run in panel.over_time.runs] == ["m.py"]
    assert panel.over_time.isVisible()
