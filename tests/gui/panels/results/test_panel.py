"""The panel: the table of all runs, the verdict below it, and what can be done with a run."""

import json
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtWidgets import QApplication, QFileDialog

from ace_studio.gui.panels.results.panel import as_csv, as_markdown
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import sentence
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import Phase
from ace_studio.records.results import RunStatus, TargetRun, Warning
from ace_studio.session.document import Activity, EngineState, JobKind
from ace_studio.session.session import CANCELLED
from tests.gui.gestures import LEFT
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import TABLE, result_of, run_of, show_result, three_runs
from tests.gui.stored_screens import SIZE


def test_results_in_which_nothing_was_compressed_say_so_and_lead_to_the_plan(desk):
    table = layered_table(2)
    desk.traced()
    show_result(desk, table, result_of(table, (run_of(table, precision="fp32"),), goal_met=None))
    results = desk.panel("results")
    assert results._verdict.text().startswith("Nothing was compressed")
    desk.panel("model")
    desk.bot.mouseClick(results.plan_button, LEFT)
    desk.settle()
    assert desk.window.workbench.panel("plan").isVisible()
    show_result(desk, table, result_of(table, (run_of(table),), goal_met=None))
    assert results._verdict.text().startswith("No goal was set; the best is ")
    assert not results.plan_button.isVisible()


def test_an_export_says_where_it_went_until_another_run_is_selected(desk, tmp_path, monkeypatch):
    desk.ran()
    results = desk.panel("results")
    runs = desk.document.runs
    index = next(at for at, run in enumerate(runs) if run.artifact)
    artifact = tmp_path / "run" / Path(runs[index].artifact)
    artifact.parent.mkdir(parents=True)
    artifact.write_bytes(b"weights")
    desk.session._state.change(output=str(tmp_path / "run"))
    desk.session.view.select_run(index)
    desk.settle()
    target = tmp_path / f"mine{artifact.suffix}"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    desk.bot.mouseClick(results.export_button, LEFT)
    desk.settle()
    assert target.read_bytes() == b"weights"
    assert results._saved.text() == f"Exported to {target} (checksums beside it)"
    desk.session.view.select_run(next(at for at in range(len(runs)) if at != index))
    desk.settle()
    assert not results._saved.isVisible()


def test_words_that_cannot_be_broken_leave_the_panel_beside_as_wide_as_it_was(desk):
    desk.ran().panel("plan")
    results = desk.panel("results")
    before = desk.panel("plan").width()
    desk.session.view.select_run(1)
    results._exported = desk.document.runs[1], f"Exported to /{'x' * 200}.onnx"
    results._show_words(desk.document)
    desk.settle()
    assert results._saved.isVisible() and results._saved.toolTip() == results._exported[1]
    assert desk.panel("plan").width() == before


def test_no_panel_below_takes_room_from_the_plan_in_a_small_window(desk):
    desk.ran()
    desk.window.resize(*SIZE)
    plan = desk.panel("plan")
    before = plan.width()
    show_result(desk, TABLE, result_of(TABLE, warnings=(HINT, CONTENTION)))
    for name in ("run", "results", "charts", "advice", "problems"):
        desk.panel(name)
        desk.settle()
        assert plan.width() == before, name
    assert desk.panel("results").warnings_button.isVisible()


def test_at_the_usual_width_every_number_of_the_results_can_be_read(desk):
    desk.ran()
    results = desk.panel("results")
    model = results.model
    for at, column in enumerate(model.columns):
        for row in range(model.rowCount()):
            text = str(model.index(row, at).data() or "")
            needed = results.table.fontMetrics().horizontalAdvance(text) + 8
            assert needed <= results.table.columnWidth(at), (column.title, text)


def test_the_verdict_names_the_best_run_and_its_row_is_in_sight(desk):
    table = layered_table(2)
    desk.traced()
    for name in ("results", "run"):  # as in a run: the results are behind until it ends
        desk.panel(name)
        desk.settle()
    runs = tuple(run_of(table, target=f"target-{at}", p50=30.0 - at) for at in range(25))
    result = result_of(table, runs, chosen=24)
    desk.session._state.change(
        baseline=result.baseline, runs=runs, run_numbers=tuple(range(25)), result=result, ran_with=desk.document.recipe
    )
    desk.window.commands.show_panel("results")
    desk.settle()
    results = desk.window.workbench.panel("results")
    assert desk.document.selection.run is None
    best = "the best is target-24 int8-static: 1.67× against eager fp32"
    assert results._verdict.text() == f"The goal (accuracy drop at most 1 %) is met: {best}"

    def is_best_in_sight():
        place = results.table.visualRect(results.model.index(results.model.view_row(25), 0))
        return results.table.viewport().rect().contains(place)

    assert is_best_in_sight()
    bar = results.table.verticalScrollBar()
    bar.triggerAction(bar.SliderAction.SliderToMinimum)
    desk.window.resize(desk.window.width(), desk.window.height() + 40)
    desk.settle()
    assert bar.value() == 0  # who has scrolled looks at something else


def test_after_a_run_that_failed_at_once_the_verdict_says_that_it_is_about_the_run_before(desk):
    table = layered_table(2)
    desk.traced()
    show_result(desk, table, result_of(table, (run_of(table),), goal_met=None))
    verdict = desk.panel("results")._verdict
    before = verdict.text()
    desk.session._state.change(ended_by=Problem(code=ErrorCode.NO_DATA, what="There is no data.npz"))
    desk.settle()
    assert verdict.text() == f"The run before: {before}"


def test_the_verdict_and_the_row_of_a_run_that_stayed_at_fp32_say_so(desk):
    desk.traced()
    run = run_of(TABLE, kept=TABLE.op_id)
    show_result(desk, TABLE, result_of(TABLE, (run,)))
    results, built = desk.panel("results"), run.built_words
    assert f"onnxruntime {built}" in results._verdict.text()
    assert [row.plan for row in results.rows if row.index == 0] == [built]


def test_results_hold_the_baseline_every_run_and_a_star_at_the_chosen_one(desk):
    model = desk.ran().panel("results").model
    assert model.rowCount() == len(desk.document.runs) + 1
    marks = [model.columns[0].values[at] for at in range(model.rowCount())]
    assert marks.index("★") == desk.document.result.chosen + 1


def test_a_run_that_failed_or_was_not_possible_says_why(desk):
    results = desk.ran().panel("results")
    lost = next(at for at, run in enumerate(desk.document.runs) if run.error is not None)
    desk.session.view.select_run(lost)
    desk.settle()
    error = desk.document.runs[lost].error
    assert error.what in results._why.text()
    assert sentence(error.why) in results._why.text()
    status = next(each for each in results.model.columns if each.title == "status")
    assert status.values[lost + 1] == desk.document.runs[lost].status.value
    assert error.remedy in status.tips(lost + 1)
    assert not results.export_button.isEnabled()


def test_without_a_selected_run_the_results_say_how_many_gave_no_numbers(desk):
    results = desk.ran().panel("results")
    desk.session.view.select_run(None)
    desk.settle()
    lost = sum(run.error is not None for run in desk.document.runs)
    assert lost
    assert f"{lost} of {len(desk.document.runs)} runs" in results._why.text()


def test_the_results_say_intervals_memory_and_tokens_where_they_are_known(desk, charts):
    first, *others = three_runs(TABLE)
    first = replace(first, drop_low=-0.01, drop_high=0.05, tokens_per_s=12.5)
    show_result(desk, TABLE, result_of(TABLE, runs=(first, *others)))
    columns = {column.title: column for column in desk.panel("results").model.columns}
    assert columns["drop"].tips(1) == "95 %: -1.00 % – 5.00 %; around 0: no difference was seen"
    assert columns["tokens/s"].text(12.5) == "12.5"
    assert "memory" not in columns


HINT = Warning(
    code="artifact-options",
    what='It computes as measured only with {"INFERENCE_PRECISION_HINT": "f32"}',
    where="openvino",
)
CONTENTION = Warning(code="contention", what="The machine was busy", where="")


def warned(desk):
    show_result(desk, TABLE, result_of(TABLE, warnings=(HINT, CONTENTION)))
    return desk.panel("results")


def test_every_warning_is_counted_in_the_verdict_and_named_on_the_row_it_is_about(desk, charts):
    results = warned(desk)
    assert results.warnings_button.text() == "2 warnings"
    status = next(each for each in results.model.columns if each.title == "status")
    openvino = next(at for at, each in enumerate(results.rows) if each.run.target == "openvino")
    assert status.values[openvino] == "ok, 1 warning"
    assert status.tips(openvino) == HINT.what
    desk.bot.mouseClick(results.warnings_button, LEFT)
    desk.settle()
    assert desk.window.workbench.panel("problems").isVisible()


def test_a_goal_that_is_met_by_a_doubtful_run_is_no_good_news(desk):
    run = run_of(TABLE)
    slower = replace(run, float_speedup=0.85, float_speedup_low=0.8, float_speedup_high=0.9)
    made_up = Warning(code="fake-calibration", what="Ranges were found on made-up numbers", where="[calibration]")
    desk.traced()
    for runs, warnings, role, words in (
        ((run,), (CONTENTION,), "good", "against eager fp32"),
        ((slower,), (), "warn", "0.85× against fp32 in the same runtime; slower than in float"),
        ((run,), (made_up,), "warn", "; calibrated with made-up numbers"),
    ):
        show_result(desk, TABLE, result_of(TABLE, runs, warnings=warnings))
        verdict = desk.panel("results")._verdict
        assert verdict.property("role") == role and verdict.text().endswith(words)


def test_in_a_small_window_the_words_stand_above_the_buttons_and_the_best_row_in_sight(desk):
    desk.ran()
    desk.window.resize(960, 540)
    show_result(desk, TABLE, result_of(TABLE, warnings=(HINT, CONTENTION)))
    results = desk.panel("results")
    desk.settle()
    results._exported = results.session.document.runs[0], f"Exported to /{'x' * 200}.onnx"
    desk.session.view.select_run(0)
    desk.settle()
    assert results._verdict.height() >= results._verdict.heightForWidth(results._verdict.width())
    assert min(results._why.height(), results._saved.height()) >= results._why.fontMetrics().height()
    assert results._saved.geometry().bottom() < results.export_button.geometry().top()
    best = next(at for at, each in enumerate(results.rows) if each.is_chosen)
    place = results.table.visualRect(results.model.index(results.model.view_row(best), 0))
    assert results.table.viewport().rect().contains(place)


def test_an_export_names_the_options_that_the_artifact_needs_and_the_code_sets_them(
    desk, charts, tmp_path, monkeypatch
):
    results = warned(desk)
    run = desk.document.runs.index(next(run for run in desk.document.runs if run.target == "openvino"))
    (tmp_path / "model.onnx").write_bytes(b"weights")
    desk.session._state.change(output=str(tmp_path))
    desk.session.view.select_run(run)
    desk.settle()
    target = tmp_path / "mine.onnx"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    desk.bot.mouseClick(results.export_button, LEFT)
    desk.settle()
    assert HINT.what in results._why.text()
    results.code_action.trigger()
    code = QApplication.clipboard().text()
    assert f"compile_model({json.dumps(str(target))}" in code
    assert 'options = {"INFERENCE_PRECISION_HINT": "f32", ' in code


def test_runs_of_a_target_stand_together_and_dropped_ones_are_hidden_on_request(desk, charts):
    runs = (run_of(TABLE, "a", p50=3.0), run_of(TABLE, "b"), replace(run_of(TABLE, "a"), status=RunStatus.DROPPED))
    show_result(desk, TABLE, result_of(TABLE, runs=runs))
    results = desk.panel("results")
    assert [each.index for each in results.rows] == [None, 0, 1, 2]
    results.group_action.trigger()
    assert [each.index for each in results.rows] == [None, 0, 2, 1]
    desk.session.view.select_run(1)
    desk.settle()
    assert [index.row() for index in results.table.selectionModel().selectedRows()] == [3]
    results.dropped_action.trigger()
    assert [each.index for each in results.rows] == [None, 0, 1]


def test_the_table_is_copied_as_markdown_and_as_csv(desk, charts):
    results = desk.panel("results")
    actions = {action.text(): action for action in results.menu.actions()}
    actions["Copy the table as Markdown"].trigger()
    lines = QApplication.clipboard().text().splitlines()
    assert lines[0].startswith("|  | target | plan | status | latency, ms |")
    assert len(lines) == 2 + results.model.rowCount()
    actions["Copy the table as CSV"].trigger()
    assert QApplication.clipboard().text().splitlines()[2].startswith(",onnxruntime,int8-static,ok,2.0,")


def test_every_column_has_one_unit_and_says_what_it_is(desk, charts):
    columns = desk.panel("results").model.columns
    assert [column.title for column in columns if not column.tip] == []
    latency = next(column for column in columns if column.title == "latency, ms")
    assert [latency.text(value) for value in latency.values] == ["10.00", "2.000", "4.000", "6.000"]


def test_a_run_that_is_being_built_has_a_row_and_a_cancelled_job_says_so(desk):
    desk.traced()
    run = TargetRun(target="openvino", status=RunStatus.OK, precision="int8-static")
    activity = Activity(
        state=EngineState.BUSY, verb=JobKind.RUN, phase=Phase.LOWER, detail="openvino int8-static", job="j", run=0
    )
    desk.session._state.change(runs=(run,), run_numbers=(0,), activity=activity, result=None)
    desk.settle()
    results = desk.panel("results")  # a run that starts brings its own panel to the front
    assert results.model.index(0, 3).data() == "building …"
    assert results._verdict.text() == "Building: openvino int8-static"
    idle = Activity(state=EngineState.IDLE)
    desk.session._state.change(activity=idle, ended_by=CANCELLED)
    desk.settle()
    assert results.model.index(0, 3).data() == "unfinished"
    assert results._verdict.text() == "Cancelled before the end"
    desk.session.plan.set_plan_from_goal(True)
    desk.session._state.change(runs=(run, run), run_numbers=(0, 1))
    desk.settle()
    assert results._verdict.text() == "Cancelled; Run goes on from the plans that were built"


def table():
    model = ColumnsModel()
    model.set_columns(
        [
            Column(title="name", values=["a|b", "c, d"]),
            Column(title="ms", values=[1.23456, None], text=lambda time: "–" if time is None else f"{time:.1f}",
                   is_number=True),
        ]
    )  # fmt: skip
    return model


def test_markdown_shows_what_the_table_shows_with_numbers_to_the_right():
    assert as_markdown(table()) == "| name | ms |\n| --- | ---: |\n| a\\|b | 1.2 |\n| c, d | – |\n"


def test_csv_has_numbers_in_full_and_only_rows_that_the_filter_keeps():
    model = table()
    assert as_csv(model) == 'name,ms\na|b,1.23456\n"c, d",\n'
    model.set_filter("c, d")
    assert as_csv(model) == 'name,ms\n"c, d",\n'
