"""One model over time: a figure of its chosen runs, from the first to the newest."""

from datetime import UTC, datetime

from tests.gui.panels.history.past_runs import click
from tests.session.fake_engine_link import result, target_run


def test_the_runs_of_one_model_are_drawn_as_a_line(past):
    panel = past.panel("history")
    click(past, panel, 0)
    panel.time_action.trigger()
    past.settle()
    assert [run.title for run in panel.over_time.runs] == ["m.py"]
    assert panel.over_time.isVisible()


def test_the_line_goes_on_with_a_new_run_and_in_another_theme(past):
    panel = past.panel("history")
    click(past, panel, 0)
    panel.time_action.trigger()
    date = datetime(2026, 11, 9, 12, 0, tzinfo=UTC)
    past.session.history.store.add(result(target_run("eager")), recipe_toml="", title="m.py", date=date)
    past.session.history.load_history()
    past.settle()
    assert len(panel.over_time.runs) == 2 and panel.over_time.isVisible()
    past.session.set_setting("theme", "light")
    past.settle()
    ground = panel.over_time.chart.widget.backgroundBrush().color().name()
    assert ground == past.window.theme.colours.surface
