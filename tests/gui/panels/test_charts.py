"""The charts panel: a list of charts, and the one that is chosen. Each is loaded when it is first seen."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QStackedWidget

from ace_studio.gui.panels.charts import CHARTS
from ace_studio.records.messages import JobFinished, Phase, Progress
from tests.gui.charting import open_chart
from tests.gui.run_results import REPORT, TABLE


def test_charts_are_drawn_for_every_run_that_was_measured(desk):
    charts = desk.ran().panel("charts")
    measured = [run for run in desk.document.runs if run.latency_ms is not None]
    overview = charts.show_chart("overview")
    assert len(overview.points) == len(measured) + 1
    assert overview.latency.plot.items


def test_every_chart_says_what_is_missing_or_draws_and_follows_the_theme(desk, charts):
    for theme in ("dark", "light"):
        desk.session.set_setting("theme", theme)
        desk.settle()
        for row in CHARTS:
            view = open_chart(desk, charts, row.id)
            # Only two sides have a difference, and values have to be asked for.
            assert charts._pages.currentWidget() is (charts._empty if row.id in ("differences", "values") else view)
            assert view.colours.name == theme


@pytest.mark.parametrize("chart", [row.id for row in CHARTS if row.id not in ("transitions", "sensitivity", "weights")])
def test_without_a_run_a_chart_says_how_to_get_one(desk, chart):
    desk.captured(TABLE, REPORT)
    charts = desk.panel("charts")
    charts.show_chart(chart)
    assert charts._pages.currentWidget() is charts._empty
    assert charts._empty._text.text()


def test_the_list_is_walked_by_the_keyboard_and_the_chart_is_remembered(desk, charts):
    charts.list.setFocus()
    desk.bot.keyClick(charts.list, Qt.Key.Key_Down)
    assert charts.chart_id == "trade-off"
    assert desk.session.settings.recall("chart") == "trade-off"


def test_a_chart_takes_the_whole_screen_until_escape_brings_it_back(desk, charts):
    desk.bot.mouseClick(charts.enlarge_button, Qt.MouseButton.LeftButton)
    large = charts.findChild(QDialog)
    assert large.isVisible()
    assert large.findChild(QStackedWidget).currentWidget() is charts.views["overview"]
    desk.bot.keyClick(large, Qt.Key.Key_Escape)
    desk.settle()
    assert charts._pages.isVisible()
    assert charts.isAncestorOf(charts._pages)


def test_the_progress_of_a_job_draws_only_the_chart_that_shows_it(desk, charts, monkeypatch):
    overview, scan = open_chart(desk, charts, "overview"), open_chart(desk, charts, "sensitivity")
    drawn = []
    for view in (overview, scan):
        monkeypatch.setattr(view, "update_from", lambda _, view=view: drawn.append(view))
    for chart, wanted in (("overview", []), ("sensitivity", [scan, scan])):
        open_chart(desk, charts, chart)
        desk.session.jobs.scan_sensitivity()
        desk.settle()
        job = desk.engine.requests[-1].job
        drawn.clear()
        for fraction in (0.25, 0.5):
            desk.session.apply(Progress(job=job, phase=Phase.MEASURE, fraction=fraction))
            desk.settle()
        assert drawn == wanted
        desk.session.apply(JobFinished(job=job))
        desk.settle()


def test_no_chart_takes_room_from_the_choices_beside_it(desk, charts):
    """In a window of 960 pixels, as one has at 200 %."""
    desk.window.resize(960, 570)
    plan = desk.panel("plan")
    for row in CHARTS:
        charts.show_chart(row.id)
        desk.settle()
        assert plan.width() >= 285, row.id
