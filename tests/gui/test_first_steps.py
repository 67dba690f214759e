"""The first minutes with a model of one's own: what is missing is said where it can be mended, and what is done too."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QPushButton

from ace_studio.gui.panels.plan.precision import NO_GOAL
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import EntryPoint, FileInspected, FileReport, JobFailed
from ace_studio.records.recipes.recipe import Goal
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import result_of, run_of, show_result

LEFT = Qt.MouseButton.LeftButton
NOTHING_TO_RUN_WITH = Problem(
    code=ErrorCode.BAD_INPUT, what="There is nothing to run the model with", why="no examples", remedy="Add rows",
    where="[inputs]",
)  # fmt: skip
CODE = """
class Net(nn.Module):
    def forward(self, image, mask):
        return image
"""


@pytest.fixture
def fresh(desk, tmp_path):
    """A file with a class and nothing else, opened and trusted."""
    file = tmp_path / "net.py"
    file.write_text(CODE)
    desk.engine.by_itself = False
    desk.window.commands.open_path(str(file))
    report = FileReport(
        path=str(file), kind="python", label="Python source", sha256="a" * 64, size_bytes=9, trust="code",
        entries=(EntryPoint(name="Net", line=2, kind="class", signature="Net()", is_module=True),),
    )  # fmt: skip
    desk.session.apply(FileInspected(job=desk.engine.requests[-1].job, report=report))
    desk.session.trust.trust_file()
    desk.settle()
    desk.settle()
    return desk


def buttons(panel):
    return {one.text(): one for one in panel.findChildren(QPushButton) if one.isVisible()}


def test_a_model_without_examples_leads_to_the_inputs_which_know_what_forward_takes(fresh):
    graph = fresh.window.workbench.panel("graph")
    fresh.panel("run")
    fresh.bot.mouseClick(buttons(graph)["Add inputs"], LEFT)
    fresh.settle()
    inputs = fresh.window.workbench.panel("shapes")
    assert inputs.isVisible()
    assert "forward() takes image, mask" in inputs._empty._text.text()
    for name, left in (("image", "mask"), ("mask", "x")):
        assert inputs.form.name.placeholderText() == name
        inputs.form.shape.setFocus()
        fresh.bot.keyClicks(inputs.form.shape, "2x3")
        fresh.bot.keyClick(inputs.form.shape, Qt.Key.Key_Return)
        fresh.settle()
        assert inputs.form.name.placeholderText() == left
    assert list(fresh.document.recipe.inputs.rows[0]) == ["image", "mask"]
    assert "Add inputs" not in buttons(graph)


def test_weights_alone_ask_for_the_function_that_makes_the_model_before_anything_else(fresh):
    report = replace(fresh.document.file, kind="state-dict", entries=())
    fresh.session.choices.set_entry("")
    fresh.session._state.change(file=report)
    fresh.settle()
    graph = fresh.window.workbench.panel("graph")
    assert graph._empty._title.text() == "Which function makes the model?"
    assert "file.py:name" in graph._empty._text.text()
    fresh.session.choices.set_entry("net.py:Net")
    fresh.settle()
    assert graph._empty._title.text() == "No examples yet"


def test_a_failure_about_the_examples_has_a_way_to_them_and_is_forgotten_by_the_next_start(fresh):
    fresh.do("trace")
    fresh.session.apply(JobFailed(job=fresh.engine.requests[-1].job, problems=(NOTHING_TO_RUN_WITH,)))
    fresh.settle()
    bar = fresh.window.bars.problem
    assert bar._sentence.text() == "No examples. Add rows."
    assert fresh.panel("run")._phase.text() == "Failed: There is nothing to run the model with"
    card = fresh.window.workbench.panel("graph").lone_card
    assert not card.open_button.isVisible()
    fresh.bot.mouseClick(card.inputs_button, LEFT)
    fresh.settle()
    assert fresh.window.workbench.panel("shapes").isVisible()
    fresh.do("trace")
    assert fresh.document.problems == ()
    assert not bar.isVisible()


def test_a_plan_that_waits_for_a_goal_that_nobody_set_says_that_nothing_would_be_compressed(desk):
    desk.traced()
    desk.session.plan.set_plan_from_goal(True)
    desk.session.choices.set_goal(Goal())
    about = desk.panel("plan").precision._about
    assert about.text() == NO_GOAL
    assert about.property("role") == "warn"
    desk.session.choices.set_goal(Goal(max_drop=0.01))
    desk.settle()
    assert about.text() != NO_GOAL
    assert about.property("role") == "dim"


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
    target = tmp_path / "mine.bin"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    desk.bot.mouseClick(results.export_button, LEFT)
    desk.settle()
    assert target.read_bytes() == b"weights"
    assert results._why.text() == f"Exported to {target} (checksums beside it)"
    desk.session.view.select_run(next(at for at in range(len(runs)) if at != index))
    desk.settle()
    assert "Exported" not in results._why.text()


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
    runs = tuple(run_of(table, target=f"target-{at}", p50=30.0 - at) for at in range(25))
    result = result_of(table, runs, chosen=24)
    desk.session._state.change(
        baseline=result.baseline, runs=runs, run_numbers=tuple(range(25)), result=result, ran_with=desk.document.recipe
    )
    results = desk.panel("results")
    desk.settle()
    assert desk.document.selection.run is None
    assert results._verdict.text() == "The goal is met: the best is target-24 int8-static, 1.67×"
    place = results.table.visualRect(results.model.index(results.model.view_row(25), 0))
    assert results.table.viewport().rect().contains(place)


def test_trust_is_withdrawn_from_the_menu_and_the_window_asks_again(fresh):
    action = fresh.window.actions_.by_id["withdraw-trust"]
    assert action.isEnabled()
    action.trigger()
    fresh.settle()
    assert fresh.document.needs_trust and not fresh.document.is_trusted
    assert not action.isEnabled()
