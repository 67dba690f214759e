"""The graph panel without a graph: what to do next, and the ways there."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import EntryPoint, FileInspected, FileReport, JobFailed
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from tests.gui.comparing import two_records
from tests.gui.gestures import LEFT
from tests.session.fake_engine_link import result

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


def test_weights_alone_ask_what_makes_the_model_before_anything_else(fresh):
    report = replace(fresh.document.file, kind="state-dict", entries=())
    fresh.session.choices.set_entry("")
    fresh.session._state.change(file=report)
    fresh.settle()
    graph = fresh.window.workbench.panel("graph")
    assert graph._empty._title.text() == "What makes the model?"
    assert "choose what these weights are of" in graph._empty._text.text()
    fresh.session.choices.set_entry("net.py:Net")
    fresh.settle()
    assert graph._empty._title.text() == "Which inputs does it take?"


def test_a_failure_about_the_examples_has_a_way_to_them_and_is_forgotten_by_the_next_start(fresh):
    fresh.do("trace")
    fresh.session.apply(JobFailed(job=fresh.engine.requests[-1].job, problems=(NOTHING_TO_RUN_WITH,)))
    fresh.settle()
    assert not fresh.window.bars.problem.isVisible()  # the card says it
    assert fresh.panel("run")._phase.text() == "Failed: There is nothing to run the model with"
    card = fresh.window.workbench.panel("graph").lone_card
    assert card.isVisible() and card._remedy.text() == "→ Add rows."
    assert not card.open_button.isVisible()
    fresh.bot.mouseClick(card.inputs_button, LEFT)
    fresh.settle()
    assert fresh.window.workbench.panel("shapes").isVisible()
    fresh.do("trace")
    assert fresh.document.problems == ()


def test_trust_is_withdrawn_from_the_menu_and_the_window_asks_again(fresh):
    action = fresh.window.actions_.by_id["withdraw-trust"]
    assert action.isEnabled()
    action.trigger()
    fresh.settle()
    assert fresh.document.needs_trust and not fresh.document.is_trusted
    assert not action.isEnabled()


def test_two_runs_without_a_graph_offer_nothing_to_trace(desk):
    recipe = Recipe(model=ModelChoice(source="net.py", entry="make"))
    two_records(desk, (recipe, result()), (recipe, result()))
    panel = desk.panel("graph")
    assert panel._empty._text.text() == "Neither A nor B has a graph that was kept."
    assert buttons(panel) == {}


def test_a_folder_without_a_model_is_told_in_place_of_the_graph(desk, tmp_path):
    desk.engine.by_itself = False
    desk.window.commands.open_path(str(tmp_path))
    report = FileReport(
        path=str(tmp_path), kind="folder", label="Folder", sha256="a" * 64, size_bytes=9, trust="inspect"
    )
    desk.session.apply(FileInspected(job=desk.engine.requests[-1].job, report=report))
    desk.settle()
    graph = desk.window.workbench.panel("graph")
    assert graph._empty._title.text() == "This folder is no model"
    assert not {"Trace (F5)", "Run everything (F6)"} & set(buttons(graph))
