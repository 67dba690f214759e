"""The window as a whole: opening, trusting, tracing, running, selecting, undoing, saving. The engine is a replay."""

from __future__ import annotations

import sys

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from ace_studio.gui.shell.main_window import MainWindow
from ace_studio.gui.shell.panel_table import PANELS
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed, LogLine, RunRequest, TraceRequest, WorkerLost
from ace_studio.records.places import example_recipe
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import CaptureReport, Warning
from ace_studio.session.document import EngineState
from tests.gui.graph_tables import layered_table, partial_capture


def test_an_empty_window_offers_to_open_something_and_no_verb_that_needs_a_model(desk):
    actions = desk.window.actions_.by_id
    assert desk.window.start_page.isVisible()
    assert actions["open"].isEnabled()
    assert not actions["trace"].isEnabled()
    assert not actions["save"].isEnabled()


def test_the_example_opens_with_one_click_and_asks_for_trust_before_anything_runs(desk):
    desk.bot.mouseClick(desk.window.start_page.example_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.window.bars.trust.isVisible()
    assert not desk.window.actions_.by_id["trace"].isEnabled()
    assert not any(isinstance(request, TraceRequest) for request in desk.engine.requests)


def test_trusting_takes_the_bar_away_and_allows_to_trace(desk):
    desk.open_example()
    desk.bot.mouseClick(desk.panel("model").trust_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert not desk.window.bars.trust.isVisible()
    assert desk.window.actions_.by_id["trace"].isEnabled()


def test_a_trace_shows_the_graph_and_the_verdicts(desk):
    desk.traced()
    graph = desk.window.workbench.panel("graph")
    assert graph.view.picture is not None
    assert desk.panel("shapes").table.chip_text("pixels.0").startswith("dynamic")


def test_one_selection_is_shared_by_graph_table_tree_and_source(desk):
    desk.traced()
    panels = {name: desk.panel(name) for name in ("ops", "modules", "source", "graph")}
    op_id = next(one for one in desk.document.graph.op_id if one.startswith("linear"))
    desk.session.view.select([op_id])
    for name in ("modules", "source", "ops"):
        desk.panel(name)
    rows = panels["ops"].table.selectionModel().selectedRows()
    assert [panels["ops"].model.columns[1].values[panels["ops"].model.source_row(one.row())] for one in rows] == [op_id]
    assert panels["graph"].view.selected_ops == (op_id,)
    assert panels["modules"].tree.selectedItems()[0].data(0, 0x0100).startswith("classifier")
    assert panels["source"].text.extraSelections()


def test_a_row_clicked_in_the_table_is_selected_in_the_graph(desk):
    ops = desk.traced().panel("ops")
    place = ops.table.visualRect(ops.model.index(2, 1)).center()
    desk.bot.mouseClick(ops.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    assert desk.document.selection.op_ids == (desk.document.graph.op_id[2],)
    assert desk.window.workbench.panel("graph").view.selected_ops == desk.document.selection.op_ids


def test_a_module_clicked_in_the_tree_selects_its_ops(desk):
    modules = desk.traced().panel("modules")
    item = modules.tree.topLevelItem(0).child(1)
    place = modules.tree.visualItemRect(item).center()
    desk.bot.mouseClick(modules.tree.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    graph = desk.document.graph
    inside = [op for op, path in zip(graph.op_id, graph.module, strict=True) if path.startswith("classifier")]
    assert list(desk.document.selection.op_ids) == inside


def test_a_precision_for_the_selected_ops_becomes_a_rule_and_undo_takes_it_back(desk):
    desk.traced()
    desk.session.view.select([desk.document.graph.op_id[1]])
    desk.settle()
    desk.do("precision-fp32")
    assert desk.document.recipe.plan.rules[-1].precision is Precision.FP32
    assert desk.window.isWindowModified()
    desk.do("undo")
    assert desk.document.recipe.plan.rules == ()
    assert not desk.window.isWindowModified()
    desk.do("redo")
    assert len(desk.document.recipe.plan.rules) == 1


def test_undo_says_what_it_takes_back(desk):
    desk.open_example()
    desk.session.plan.set_default_precision(Precision.BF16)
    desk.settle()
    assert "bf16" in desk.window.actions_.by_id["undo"].text()


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
    assert error.why in results._why.text()
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


def test_charts_are_drawn_for_every_run_that_was_measured(desk):
    charts = desk.ran().panel("charts")
    measured = [run for run in desk.document.runs if run.latency_ms is not None]
    overview = charts.show_chart("overview")
    assert len(overview.points) == len(measured) + 1
    assert overview.latency.plot.items


def test_esc_cancels_what_is_going_on(desk):
    desk.traced()
    desk.engine.by_itself = False
    desk.do("run")
    desk.bot.keyClick(desk.window, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.engine.cancelled == [desk.engine.requests[-1].job]
    assert desk.document.activity.state is EngineState.CANCELLING


def test_a_lost_engine_is_a_bar_and_not_a_dialog_and_the_next_run_works(desk):
    desk.traced()
    desk.engine.by_itself = False
    desk.do("run")
    problem = Problem(code=ErrorCode.CRASH, what="The engine process was killed (signal 9)", remedy="Run again")
    desk.session.apply(WorkerLost(job=desk.engine.requests[-1].job, problem=problem, exit_code=-9))
    desk.settle()
    assert desk.window.bars.problem.isVisible()
    assert desk.engine.restarts == 1
    desk.engine.by_itself = True
    desk.do("run")
    assert desk.document.result is not None


def test_problems_show_what_why_remedy_and_details_on_request(desk):
    desk.traced()
    desk.engine.by_itself = False
    desk.do("trace")
    problem = Problem(
        code=ErrorCode.USER_CODE, what="forward() raised", why="x", remedy="y", where="m.py:3", details="T"
    )
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(problem,)))
    panel = desk.panel("problems")
    texts = {
        label.text() for label in panel.findChildren(type(desk.window.bars.problem._headline)) if label.isVisible()
    }
    assert {"forward() raised", "x", "→ y", "m.py:3"} <= texts


def test_a_click_dismisses_a_problem(desk):
    desk.open_example()
    desk.session.report(Problem(code=ErrorCode.USAGE, what="Something"))
    panel = desk.panel("problems")
    close = next(one for one in panel.findChildren(object) if getattr(one, "accessibleName", str)() == "Dismiss")
    desk.bot.mouseClick(close, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.problems == ()


def test_the_recipe_is_saved_where_it_is_asked_for_and_opens_again(desk, tmp_path, monkeypatch):
    desk.open_example()
    desk.session.plan.set_default_precision(Precision.BF16)
    path = tmp_path / "mine.toml"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    desk.do("save-as")
    assert path.exists()
    assert desk.window.windowTitle().startswith("mine.toml")
    desk.window.commands.open_path(str(path))
    desk.settle()
    assert desk.document.recipe.plan.default is Precision.BF16


def test_a_dropped_file_is_opened(desk):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(example_recipe()))])
    event = QDropEvent(
        QPointF(10, 10), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    desk.window.dropEvent(event)
    desk.settle()
    assert desk.document.title == "recipe.toml"


def test_opening_something_else_offers_the_unsaved_choices_again(desk):
    desk.open_example()
    desk.session.plan.set_default_precision(Precision.FP16)
    desk.open_example()
    assert desk.window.bars.restore.isVisible()
    desk.window.bars._restore()
    desk.settle()
    assert desk.document.recipe.plan.default is Precision.FP16


def test_panels_take_turns_when_a_graph_arrives_so_that_the_window_answers_between_them(desk):
    desk.captured(layered_table(50), CaptureReport(rung="export", ops=150, seconds=1.0))
    ops = desk.panel("ops")
    modules = desk.panel("modules")
    turns = []
    QTimer.singleShot(0, lambda: turns.append("somebody else"))
    for name, panel in (("ops", ops), ("modules", modules), ("graph", desk.window.workbench.panel("graph"))):
        show = panel.update_from
        panel.update_from = lambda document, name=name, show=show: (turns.append(name), show(document))
    desk.session.view.select([desk.document.graph.op_id[5]])
    desk.window._refresh()
    assert turns == ["graph"]
    desk.bot.waitUntil(lambda: set(turns) == {"graph", "ops", "modules", "somebody else"})
    assert turns.index("somebody else") < len(turns) - 1
    assert ops.table.selectionModel().selectedRows()


def test_a_flood_of_log_lines_is_shown_without_a_repaint_per_line(desk):
    run = desk.traced().panel("run")
    for number in range(3000):
        desk.session.apply(LogLine(text=f"line {number}"))
    desk.settle()
    lines = run.log.toPlainText().splitlines()
    assert lines[-1] == "line 2999"
    assert len(lines) == len(desk.document.log)


def test_choices_that_changed_since_the_run_are_said(desk):
    desk.ran()
    assert not desk.window.bars.stale.isVisible()
    desk.session.plan.set_default_precision(Precision.FP16)
    desk.settle()
    assert desk.window.bars.stale.isVisible()


def test_areas_can_be_hidden_and_the_layout_is_kept(desk):
    desk.open_example()
    desk.do("toggle-side")
    desk.do("show-results")
    state = desk.window.workbench.save_layout()
    desk.do("toggle-side")
    desk.do("show-ops")
    desk.window.workbench.restore_layout(state)
    assert desk.window.workbench.save_layout() == state


@pytest.mark.parametrize("theme", ["light", "dark", "high-contrast"])
def test_every_panel_can_be_shown_in_every_theme(desk, theme):
    desk.ran()
    desk.session.set_setting("theme", theme)
    for row in PANELS:
        assert desk.panel(row.id).accessibleName() == row.title
    assert desk.window.theme.colours.name == theme
    assert desk.document.problems == ()


def test_a_mistake_in_a_panel_is_a_problem_and_the_window_lives(desk, monkeypatch):
    desk.traced()
    panel = desk.panel("ops")

    def stumble(_document):
        raise RuntimeError("stumbled")

    monkeypatch.setattr(panel, "update_from", stumble)
    desk.session.view.select([desk.document.graph.op_id[1]])
    desk.settle()
    assert desk.document.problems[-1].code is ErrorCode.INTERNAL
    assert desk.panel("source").isVisible()


def test_no_torch_is_imported_by_a_whole_session(desk):
    # Other tests of the same process may have brought torch along; what counts is that nothing here does.
    before = "torch" in sys.modules
    desk.ran()
    for row in PANELS:
        desk.panel(row.id)
    assert ("torch" in sys.modules) == before


def test_a_file_that_is_no_model_says_so_and_cannot_be_traced(desk, tmp_path):
    path = tmp_path / "text.pt"
    path.write_text("hello", encoding="utf-8")
    desk.engine.by_itself = False
    desk.window.commands.open_path(str(path))
    problem = Problem(code=ErrorCode.BAD_FILE, what="text.pt is plain text, not a model")
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(problem,)))
    desk.settle()
    assert not desk.window.actions_.by_id["trace"].isEnabled()
    assert desk.window.workbench.panel("graph")._empty._title.text() == "This file could not be opened"
    assert desk.panel("model")._kind.text() == "It could not be opened"
    assert not desk.panel("model")._tensors.isVisible()


def test_a_new_window_is_never_larger_than_the_screen(desk, qtbot):
    window = MainWindow(desk.session, desk.window.theme)
    qtbot.addWidget(window)
    room = window.screen().availableSize()
    assert window.width() <= room.width()
    assert window.height() <= room.height()


def test_problems_count_the_breaks_show_them_on_request_and_list_what_the_capture_warns_of(desk):
    table, capture = partial_capture(3)
    warned = Warning(code="random", what="draws random numbers", where="m.py:7")
    desk.captured(table, replace(capture, warnings=(warned,)))
    panel = desk.panel("problems")
    texts = {label.text() for label in panel.findChildren(QLabel)}
    assert {"The capture stops at 2 breaks, 5 ops left to eager", "draws random numbers", "m.py:7"} <= texts
    show = next(each for each in panel.findChildren(QPushButton) if each.text() == "Show breaks")
    desk.bot.mouseClick(show, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.window.workbench.panel("breaks").isVisible()


def test_the_graph_is_saved_as_a_picture(desk, tmp_path, monkeypatch):
    assert not desk.window.actions_.by_id["save-graph"].isEnabled()
    desk.captured(*partial_capture(3))
    path = tmp_path / "graph.svg"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    desk.do("save-graph")
    assert "a branch depends" in path.read_text(encoding="utf-8")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "graph.doc"), ""))
    desk.do("save-graph")
    assert "no ending that the graph can be saved as" in desk.document.problems[-1].what


def test_a_path_that_is_not_there_is_said_on_the_start_page(desk, tmp_path):
    desk.window.commands.open_path(str(tmp_path / "nothing.py"))
    desk.settle()
    bar = desk.window.bars.problem
    assert bar.isVisible()
    assert "does not exist" in bar.accessibleName()
    assert not desk.window.bars._details.isVisible()
    assert desk.window.start_page.isVisible()
