"""Every run as a point of cost and loss."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt

from ace_studio.records.recipes.recipe import Goal
from ace_studio.records.results import FrontPoint, SearchStep
from ace_studio.records.results.on_devices import with_figures
from tests.gui.charting import open_chart, place_of
from tests.gui.run_results import TABLE, latency, result_of, show_result, three_runs
from tests.records.results.test_on_devices import figure


def test_a_point_lies_on_the_side_of_the_goal_line_that_the_engine_judges_it_by(desk, charts):
    noisy = replace(three_runs(TABLE)[0], latency_ms=latency(6.9), speedup=10.0 / 6.9)
    show_result(desk, TABLE, result_of(TABLE, runs=(noisy,)))
    desk.session.choices.set_goal(Goal(max_latency_ratio=0.7))
    view = open_chart(desk, charts, "trade-off")
    assert view._verdict.text() == "1 of 1 meet the goal"
    spot, _ = view._spots[1]
    assert spot.data["x"][0] == pytest.approx(6.9)
    assert spot.data["x"][0] < view.lines["x"].value()


def test_a_click_on_a_point_selects_its_run(desk, charts):
    view = open_chart(desk, charts, "trade-off")
    place = place_of(view.chart, 2.0, 2.0)
    desk.bot.mouseClick(view.chart.widget.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    assert desk.document.selection.run == 0


def drag(desk, chart, start, end):
    port = chart.widget.viewport()
    desk.bot.mousePress(port, Qt.MouseButton.LeftButton, pos=start)
    for step in range(1, 9):
        desk.bot.mouseMove(port, start + (end - start) * step / 8)
        desk.bot.wait(5)
    desk.bot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=end)


def test_a_line_that_is_dragged_becomes_the_goal_greys_what_misses_it_and_undo_takes_it_back(desk, charts):
    desk.session.choices.set_goal(Goal(max_drop=0.01))
    view = open_chart(desk, charts, "trade-off")
    assert view._verdict.text() == "2 of 3 meet the goal"
    line = view.lines["y"]
    start, end = place_of(view.chart, 3.0, 1.0), place_of(view.chart, 3.0, 0.3)
    drag(desk, view.chart, QPoint(start), QPoint(end))
    desk.settle()
    bound = desk.document.recipe.goal.max_drop
    assert bound == pytest.approx(0.003, abs=0.0008)
    assert view._verdict.text() == "1 of 3 meet the goal"
    assert line is not view.lines["y"]
    hollow = [point.name for spot, point in view._spots if spot.opts["brush"].style() is Qt.BrushStyle.NoBrush]
    assert hollow == ["onnxruntime", "inductor"]
    assert "misses: the metric drops by 2.00%; at most" in view._spots[1][0].toolTip()
    desk.do("undo")
    assert desk.document.recipe.goal.max_drop in (None, 0.01)


def test_size_and_fidelity_can_be_compared_as_well(desk, charts):
    view = open_chart(desk, charts, "trade-off")
    view.cost.setCurrentIndex(1)
    view.loss.setCurrentIndex(1)
    view.loss.activated.emit(1)
    desk.session.choices.set_goal(Goal(max_size_mb=15.0, min_sqnr_db=25.0))
    desk.settle()
    assert set(view.lines) == {"x", "y"}
    assert [point.name for _, point in view._spots] == ["onnxruntime", "openvino", "inductor"]


def test_the_plans_that_a_search_tried_are_crosses_without_a_name(desk, charts):
    step = SearchStep(target="onnxruntime", low="int8-static", kept_high=2, of=9, high="fp32", metric_drop=0.015,
                      latency_ratio=0.25, misses=("drop 1.50 %",))  # fmt: skip
    show_result(desk, TABLE, result_of(TABLE, search=(step, replace(step, run=1), replace(step, metric_drop=None))))
    view = open_chart(desk, charts, "trade-off")
    assert view.steps == [(pytest.approx(2.5), pytest.approx(1.5))]
    assert len(view._spots) == 4


def test_what_the_search_predicts_and_has_not_built_is_a_hollow_circle(desk, charts):
    point = FrontPoint(target="onnxruntime", low="int8-static", high="fp32", kept_high=2, of=9, predicted_db=31.0,
                       predicted_ratio=0.2, predicted_bytes=4_000_000)  # fmt: skip
    show_result(desk, TABLE, result_of(TABLE, front=(point, replace(point, built=True, predicted_db=25.0))))
    view = open_chart(desk, charts, "trade-off")
    assert view.predicted == []  # nothing is predicted of the accuracy
    view.loss.setCurrentIndex(1)
    view.loss.activated.emit(1)
    desk.settle()
    assert view.predicted == [(pytest.approx(2.0), 31.0)]
    (circle,) = (one for one in view.chart.plot.listDataItems() if "not built" in one.toolTip())
    assert circle.opts["brush"].style() is Qt.BrushStyle.NoBrush
    assert circle.toolTip() == "predicted, not built: onnxruntime, 2 of 9 ops at fp32"


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


def test_the_latency_on_a_device_is_an_axis_without_a_goal(desk, charts):
    charts.show_chart("trade-off")
    view = charts.views["trade-off"]
    assert [view.cost.itemText(at) for at in range(view.cost.count())] == ["latency", "size"]
    found = with_figures(desk.document.result, {0: figure(4.0, "box"), 1: figure(2.0, "box")})
    desk.session.devices.measured(found)
    desk.settle()
    view.cost.setCurrentIndex(2)
    view._choose_axes()
    assert view.cost.currentText() == "latency on box" and not view.cost_line.isVisible()
    assert sorted(spot.data["x"][0] for spot, _ in view._spots) == [2.0, 4.0]
    desk.session.devices.measured(replace(found, runs=tuple(replace(run, devices=()) for run in found.runs)))
    desk.settle()
    assert view.cost.currentText() == "latency" and view.cost_line.isVisible()


def test_the_goal_of_a_past_run_is_shown_and_cannot_be_changed(desk):
    desk.ran()
    desk.session.choices.set_goal(Goal(min_sqnr_db=20.0))
    desk.session.history.load_history()
    charts = desk.panel("charts")
    view = open_chart(desk, charts, "trade-off")
    desk.session.history.look_at_run(desk.document.history[0].id)
    desk.settle()
    goal = desk.document.recipe.goal
    shown = view.cost_line.check.isChecked()
    desk.bot.mouseClick(view.cost_line.check, Qt.MouseButton.LeftButton, pos=QPoint(8, 8))
    desk.settle()
    assert view.cost_line.check.isChecked() == shown
    assert not view.cost_line.check.isEnabled()
    assert not any(line.movable for line in view.lines.values())
    assert desk.document.recipe.goal == goal
    desk.session.history.leave_past_run()
    desk.settle()
    desk.bot.mouseClick(view.cost_line.check, Qt.MouseButton.LeftButton, pos=QPoint(8, 8))
    desk.settle()
    assert view.cost_line.check.isChecked() != shown
