"""The charts: what each draws of a run, and what a click or a drag in it does."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt

from ace_studio.gui.charts.kinds import CHARTS
from ace_studio.gui.charts.op_time import GROUPINGS, REST, parts_of, timed_runs
from ace_studio.gui.charts.sensitivity import SensitivityChart
from ace_studio.records.messages import PrunePreviewRequest, PruningPreviewed, SensitivityFound, SensitivityRequest
from ace_studio.records.recipes.recipe import Goal, PruneMethod
from ace_studio.records.results import CaptureReport, Improvement, SearchStep
from ace_studio.records.results.pruning import PrunedLayer, PruningReport
from tests.gui.graph_tables import large_table, layered_table
from tests.gui.run_results import latency, ranked_sensitivity, result_of, show_result, three_runs

TABLE = layered_table(3)
REPORT = CaptureReport(rung="export", ops=1, seconds=1.0)


@pytest.fixture
def charts(desk):
    desk.window.resize(1500, 1000)
    desk.captured(TABLE, REPORT)
    show_result(desk, TABLE)
    return desk.panel("charts")


def open_chart(desk, charts, chart_id):
    view = charts.show_chart(chart_id)
    desk.settle()
    desk.bot.wait(30)
    return view


def place_of(chart, x, y):
    """A place of the plot as a point of the widget."""
    scene = chart.plot.vb.mapViewToScene(QPointF(x, y))
    return chart.widget.mapFromScene(scene)


@pytest.mark.parametrize("chart", [row.id for row in CHARTS])
def test_every_chart_says_what_is_missing_or_draws_and_follows_the_theme(desk, charts, chart):
    view = open_chart(desk, charts, chart)
    assert charts._pages.currentWidget() is view
    desk.session.set_setting("theme", "light")
    desk.settle()
    assert view.colours.name == "light"


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


def test_the_results_say_intervals_memory_and_tokens_where_they_are_known(desk, charts):
    first, *others = three_runs(TABLE)
    first = replace(first, drop_low=-0.01, drop_high=0.05, tokens_per_s=12.5)
    show_result(desk, TABLE, result_of(TABLE, runs=(first, *others)))
    columns = {column.title: column for column in desk.panel("results").model.columns}
    assert columns["drop"].tips(1) == "95 %: -1.00 % – 5.00 %; around 0: no difference was seen"
    assert columns["tokens/s"].text(12.5) == "12.5"
    assert "memory" not in columns


# --- trade-off ---


def test_a_point_lies_on_the_side_of_the_goal_line_that_the_engine_judges_it_by(desk, charts):
    noisy = replace(three_runs(TABLE)[0], latency_ms=latency(7.2), speedup=1.45)
    show_result(desk, TABLE, result_of(TABLE, runs=(noisy,)))
    desk.session.choices.set_goal(Goal(max_latency_ratio=0.7))
    view = open_chart(desk, charts, "trade-off")
    assert view._verdict.text() == "1 of 1 meet the goal"
    spot, _ = view._spots[1]
    assert spot.data["x"][0] == pytest.approx(10.0 / 1.45)
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


# --- time ---


def test_the_parts_of_a_bar_add_up_to_the_time_of_its_ops():
    result = result_of(TABLE)
    document = type("D", (), {"baseline": result.baseline, "runs": result.runs})
    runs = timed_runs(document)
    assert [one.run for one in runs] == [None, 0, 1]
    for words, group_of in GROUPINGS.values():
        parts = parts_of(runs, group_of)
        for at, one in enumerate(runs):
            total = sum(op.latency_ms or 0.0 for op in one.ops)
            assert sum(part.width_ms for part in parts if part.row == at) == pytest.approx(total), words


def test_more_parts_than_colours_are_one_part_at_the_end():
    table = large_table(300)
    document = type("D", (), {"baseline": result_of(table).baseline, "runs": ()})
    parts = parts_of(timed_runs(document), GROUPINGS["each"][1])
    assert len(parts) == 10
    assert parts[-1].group == REST


def test_a_click_on_a_part_selects_its_ops_and_its_run(desk, charts):
    view = open_chart(desk, charts, "time")
    part = next(one for one in view.parts if one.run == 0 and one.group == "linear")
    place = place_of(view.chart, part.start_ms + part.width_ms / 2, len(view._runs) - 1 - part.row)
    desk.bot.mouseClick(view.chart.widget.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    assert desk.document.selection.op_ids == ("stem_linear", "linear_0", "linear_1", "linear_2")
    assert desk.document.selection.run == 0


# --- roofline, error, worst ---


def test_the_roofline_places_an_op_by_its_operations_bytes_and_time(desk, charts):
    view = open_chart(desk, charts, "roofline")
    op, intensity, gflops = next(one for one in view.placed if one[0].id == "linear_0")
    row = TABLE.op_id.index("linear_0")
    assert intensity == pytest.approx(1000 * row / 4096)
    assert gflops == pytest.approx(1000 * row / op.latency_ms / 1e6)


def test_the_error_line_is_that_of_the_selected_run(desk, charts):
    view = open_chart(desk, charts, "error")
    assert view.shown[0][1] == pytest.approx(60.0 - TABLE.op_id.index("stem_linear"))
    desk.session.view.select_run(0)
    desk.settle()
    assert view.shown[0][1] == pytest.approx(40.0 - TABLE.op_id.index("stem_linear"))
    row, value, op = view.shown[2]
    desk.bot.mouseClick(view.chart.widget.viewport(), Qt.MouseButton.LeftButton, pos=place_of(view.chart, row, value))
    desk.settle()
    assert desk.document.selection.op_ids == (op.id,)


def test_the_worst_samples_are_those_of_the_selected_run(desk, charts):
    view = open_chart(desk, charts, "worst")
    assert [list(column.values) for column in view.model.columns][1] == [7]
    desk.session.view.select_run(0)
    desk.settle()
    assert [list(column.values) for column in view.model.columns][1] == [3]


# --- sensitivity ---


def test_the_most_sensitive_op_comes_first_and_a_click_selects_it(desk, charts):
    view = open_chart(desk, charts, "sensitivity")
    assert view.ranked[0] == ("stem_linear", 12.0)
    desk.bot.mouseClick(view.chart.widget.viewport(), Qt.MouseButton.LeftButton, pos=place_of(view.chart, 1.0, 5.0))
    desk.settle()
    assert desk.document.selection.op_ids == ("stem_norm",)


def test_a_scan_is_asked_for_shows_its_progress_and_what_comes_and_can_be_cancelled(desk):
    desk.captured(TABLE, REPORT)
    charts = desk.panel("charts")
    view = charts.show_chart("sensitivity")
    assert isinstance(view, SensitivityChart)
    desk.bot.mouseClick(view.scan_button, Qt.MouseButton.LeftButton)
    desk.settle()
    request = desk.engine.requests[-1]
    assert isinstance(request, SensitivityRequest)
    assert view.progress.isVisible()
    part = ranked_sensitivity(TABLE)[:4]
    desk.session.apply(
        SensitivityFound(job=request.job, fingerprint="f", ops=part, samples_done=1, samples=4, forwards=3.0)
    )
    desk.settle()
    assert len(view.ranked) == 4
    assert "not complete" in view._note.text()
    desk.bot.mouseClick(view.cancel_button, Qt.MouseButton.LeftButton)
    assert desk.engine.cancelled == [request.job]


def test_the_most_sensitive_ops_are_kept_at_fp32_by_a_rule_each(desk, charts):
    view = open_chart(desk, charts, "sensitivity")
    view.count.setValue(2)
    desk.bot.mouseClick(view.keep_button, Qt.MouseButton.LeftButton)
    desk.settle()
    rules = [(rule.match, str(rule.precision)) for rule in desk.document.recipe.plan.rules]
    assert rules == [("id:stem_linear", "fp32"), ("id:stem_norm", "fp32")]
    desk.do("undo")
    assert desk.document.recipe.plan.rules == ()


# --- weights ---


def test_pruning_is_previewed_and_its_layers_are_listed_and_selectable(desk, charts):
    view = open_chart(desk, charts, "weights")
    assert not view.preview_button.isEnabled()
    assert "plan" in view.preview_button.toolTip()
    desk.session.choices.set_choice("prune", method=PruneMethod.STRUCTURED)
    desk.settle()
    desk.bot.mouseClick(view.preview_button, Qt.MouseButton.LeftButton)
    request = desk.engine.requests[-1]
    assert isinstance(request, PrunePreviewRequest)
    layer = PrunedLayer(
        module="layers.1.mlp", type="Linear", shape_before="64x32", shape_after="32x32", weights_before=2048,
        weights_after=1024, macs_before=100, macs_after=50, bytes_before=8192, bytes_after=4096, sqnr_db=14.0,
    )  # fmt: skip
    report = PruningReport(method="structured", amount=0.5, layers=(layer,), parameters_before=10, parameters_after=5)
    desk.session.apply(PruningPreviewed(job=request.job, report=report))
    desk.settle()
    assert view._note.text().startswith("Preview: structured")
    place = view.table.visualRect(view.model.index(0, 0)).center()
    desk.bot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    assert desk.document.selection.op_ids == ("linear_1", "act_1")


def test_what_improved_the_rounding_is_listed_with_its_effect(desk, charts):
    tried = Improvement(method="equalize", before_db=20.0, after_db=24.5, kept=True, reason="4.5 dB better")
    show_result(desk, TABLE, result_of(TABLE, improvements=(tried,)))
    view = open_chart(desk, charts, "weights")
    view.which.setCurrentIndex(1)
    view.which.activated.emit(1)
    assert view._note.text() == "1 of 1 helped and were kept"
    assert [column.title for column in view.model.columns][2:4] == ["before", "after"]


# --- precision changes ---


def test_the_matrix_counts_changes_and_a_click_selects_their_ops(desk, charts):
    view = open_chart(desk, charts, "transitions")
    names = [view.table.verticalHeaderItem(at).text() for at in range(view.table.rowCount())]
    at, to = names.index("int8-static"), names.index("fp32")
    place = view.table.visualItemRect(view.table.item(at, to)).center()
    desk.bot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    assert desk.document.selection.op_ids == ("add_0", "linear_1")
    view.which.setCurrentIndex(1)
    view.which.activated.emit(1)
    assert view.table.rowCount() == 1


def test_no_chart_takes_longer_than_a_blink_at_two_thousand_ops(desk):
    table = large_table(2000)
    desk.captured(table, REPORT)
    charts = desk.panel("charts")
    show_result(desk, table)
    slow = {}
    for chart in CHARTS:
        view = open_chart(desk, charts, chart.id)
        took = []
        for at in range(3):
            desk.session.view.select_run(at % 2)
            start = time.process_time()
            view.update_from(desk.document)
            took.append(time.process_time() - start)
        if min(took) > 0.05:
            slow[chart.id] = min(took)
    assert slow == {}
