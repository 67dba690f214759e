"""Bars under the toolbar: messages and decisions that do not block the window."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QLabel, QToolButton, QWidget

from ace_studio.gui.shell.bars import beside_words
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed, TraceRequest, WorkerLost
from ace_studio.records.places import example_recipe
from ace_studio.records.recipes.plan import Precision
from tests.gui.comparing import press, two_plans

POINTER = "The graph appears here once the file is trusted and traced."


def test_the_example_opens_with_one_click_and_asks_for_trust_before_anything_runs(desk):
    desk.bot.mouseClick(desk.window.start_page.example_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.window.step_line.buttons["trust"].property("role") == "primary"
    assert not desk.window.actions_.by_id["trace"].isEnabled()
    assert not any(isinstance(request, TraceRequest) for request in desk.engine.requests)


def test_trust_is_asked_for_in_the_line_of_steps_alone(desk):
    desk.open_example()
    asking = [
        one.text()
        for one in desk.window.findChildren(QWidget)
        if one.isVisible() and isinstance(one, QLabel | QAbstractButton) and "trust" in one.text().casefold()
    ]
    assert asking == ["Trust", POINTER]
    sentence = desk.window.step_line._sentence.text()
    assert sentence == "model.py is code: look at what would run, then allow it"
    desk.bot.mouseClick(desk.window.step_line.buttons["trust"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.window.actions_.by_id["trace"].isEnabled()


def test_a_lost_engine_is_a_bar_and_not_a_dialog_and_the_next_run_works(desk):
    desk.traced()
    desk.engine.by_itself = False
    desk.window.commands.scan_sensitivity()
    problem = Problem(code=ErrorCode.CRASH, what="The engine process was killed (signal 9)", remedy="Run again")
    desk.session.apply(WorkerLost(job=desk.engine.requests[-1].job, problem=problem))
    desk.settle()
    assert desk.window.bars.problem.isVisible()
    assert desk.engine.restarts == 1
    desk.engine.by_itself = True
    desk.do("run")
    assert desk.document.result is not None


@pytest.mark.parametrize(
    "end",
    [
        lambda job, problem: JobFailed(job=job, problems=(problem,)),
        lambda job, problem: WorkerLost(job=job, problem=problem),
    ],
)
def test_what_the_card_on_the_graph_tells_is_not_told_in_a_bar_too(desk, end):
    desk.running()
    problem = Problem(code=ErrorCode.NOT_CAPTURED, what="forward() chooses a branch by a tensor's value")
    desk.session.apply(end(desk.engine.requests[-1].job, problem))
    desk.settle()
    assert desk.window.workbench.panel("graph").card.isVisible()
    assert not desk.window.bars.problem.isVisible()
    assert problem in desk.document.problems


def test_opening_something_else_offers_the_unsaved_choices_again(desk, tmp_path):
    (tmp_path / "net.py").write_text("")
    desk.open_example()
    desk.session.plan.set_default_precision(Precision.FP16)
    desk.window.commands.open_path(str(tmp_path / "net.py"))
    desk.settle()
    assert desk.window.bars.restore.isVisible()
    desk.window.bars._restore()
    desk.settle()
    assert desk.document.recipe.plan.default is Precision.FP16
    assert desk.window.isWindowModified()


def test_a_run_that_ends_because_another_model_is_opened_is_said(desk, tmp_path):
    other = tmp_path / "other.py"
    other.write_text("x = 1\n")
    desk.traced()
    desk.engine.by_itself = False
    desk.do("run")
    ended = desk.window.bars.ended
    desk.window.commands.open_path(str(tmp_path / "nothing.py"))
    desk.settle()
    assert not ended.isVisible(), "the run goes on"
    desk.window.commands.open_path(str(other))
    desk.settle()
    assert ended.isVisible() and ended.accessibleName().startswith("The run of recipe.toml was cancelled")
    desk.bot.mouseClick(ended.findChild(QToolButton), Qt.MouseButton.LeftButton)
    assert not ended.isVisible()


def test_choices_that_changed_since_the_run_are_said(desk):
    desk.ran()
    assert not desk.window.bars.stale.isVisible()
    desk.session.plan.set_default_precision(Precision.FP16)
    desk.settle()
    assert desk.window.bars.stale.isVisible()


def test_a_path_that_is_not_there_is_said_on_the_start_page(desk, tmp_path):
    desk.window.commands.open_path(str(tmp_path / "nothing.py"))
    desk.settle()
    bar = desk.window.bars.problem
    assert bar.isVisible()
    assert "does not exist" in bar.accessibleName()
    assert not desk.window.bars._details.isVisible()
    assert desk.window.start_page.isVisible()


def test_one_bar_says_what_a_and_b_are_and_swaps_and_clears_them(desk):
    bar = desk.window.bars.pins
    assert not bar.isVisible()
    two_plans(desk)
    first, second = desk.document.pins
    assert bar.accessibleName() == f"A and B. A: {first.name}    B: {second.name}"
    assert desk.window.workbench.panel("graph").colour_by.currentData() == "difference"
    plan = desk.panel("plan")
    assert plan.changes_table.isVisible()
    assert "plan: default" in [change.name for change in desk.document.comparison.changes]
    press(desk, "Swap")
    assert desk.document.pins == (second, first)
    press(desk, "Clear")
    assert not bar.isVisible()
    assert plan.forms_page.isVisible()
    assert desk.window.workbench.panel("graph").colour_by.currentData() == "kind"
    assert desk.document.recipe.plan.default is Precision.FP16


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("net.py, best openvino fp32, 2026-11-26 01:50", "net.py, best openvino int8-dynamic, 2026-11-26 01:54",
         ("fp32, 01:50", "int8-dynamic, 01:54", "net.py, best openvino, 2026-11-26")),
        ("net.py, best eager fp32, 2026-11-26 01:50", "old.py, best eager fp32, 2026-11-26 01:50",
         ("net.py", "old.py", "best eager fp32, 2026-11-26 01:50")),
        ("net.py, best eager", "net.py, best eager fp32", ("eager", "eager fp32", "net.py, best")),
        ("net.py, plan, fp32", "models/net.py", ("net.py, plan, fp32", "models/net.py", "")),
        ("net.py, plan, fp32", "net.py, plan, fp32", ("net.py, plan, fp32", "net.py, plan, fp32", "")),
    ],
)  # fmt: skip
def test_the_bar_says_first_what_differs_between_a_and_b_and_once_what_they_share(first, second, words):
    assert beside_words(first, second) == words


def test_a_file_is_pinned_from_the_menu(desk, tmp_path, monkeypatch):
    desk.open_example()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(example_recipe()), ""))
    desk.do("pin-file-B")
    assert desk.document.pins[1].path == str(example_recipe())
    assert desk.window.bars.pins.isVisible()
