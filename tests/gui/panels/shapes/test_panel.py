"""The inputs panel: one row per example, and below every dimension its verdict."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from ace_studio.gui.dialogs.catch import CatchDialog
from ace_studio.gui.panels.shapes.panel import embedding_rows, wants_sizes
from ace_studio.records.errors import ErrorCode, Problem, visible
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.messages import JobFailed, SizesWanted
from ace_studio.records.recipes.recipe import Recipe, ShapesFrom, TargetsChoice
from ace_studio.records.tensors import DimChoice, InputFinding, TensorSpec
from ace_studio.session.choices import change
from ace_studio.session.document import Document
from tests.gui.planning import trigger


def test_a_click_on_a_verdict_is_proposed_where_there_is_one(desk):
    desk.open_example()
    panel = desk.panel("shapes")
    assert panel._source.text() == "Examples come from tracing_inputs()."
    desk.traced()
    assert panel._source.text().endswith("Click a verdict to cycle auto, dynamic, static.")


def test_rows_of_ones_own_start_from_what_was_traced(desk, shapes_panel):
    desk.bot.mouseClick(shapes_panel.use_rows_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.recipe.inputs.tracing == ""
    assert desk.document.recipe.inputs.rows[0]["pixels"].shape == (16, 1, 8, 8)


def test_rows_are_added_edited_pasted_and_removed(desk, shapes_panel):
    shapes_panel._use_rows()
    desk.settle()
    desk.bot.mouseClick(shapes_panel.add_row_button, Qt.MouseButton.LeftButton)
    desk.settle()
    model = shapes_panel.table.model()
    assert model.setData(model.index(1, 0), "3")
    desk.settle()
    assert [row["pixels"].shape[0] for row in desk.document.recipe.inputs.rows] == [16, 3]
    shapes_panel.table.setCurrentIndex(model.index(0, 0))
    QApplication.clipboard().setText("5\n6\n7")
    shapes_panel.paste()
    desk.settle()
    assert [row["pixels"].shape[0] for row in desk.document.recipe.inputs.rows] == [5, 6, 7]
    desk.bot.mouseClick(shapes_panel.remove_row_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert len(desk.document.recipe.inputs.rows) == 2


STRANGE = {
    "a formula": '=HYPERLINK("http://x")',
    "a path": "../../.ssh/id_rsa",
    "escapes": "\x1b[2J\u202e5",
    "a zero byte": "5\0",
    "markup": "<img src=http://x>5</img>",
    "a size without end": "9" * 5000,
    "lines without end": "5\n" * 200_000,
}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_what_a_stranger_put_on_the_clipboard_changes_nothing_and_is_shown_as_text(desk, shapes_panel, text):
    shapes_panel._use_rows()
    desk.settle()
    before = desk.document.recipe
    shapes_panel.table.setCurrentIndex(shapes_panel.table.model().index(0, 0))
    QApplication.clipboard().setText(text)
    shapes_panel.paste()
    desk.settle()
    said = shapes_panel._source.text()
    assert desk.document.recipe == before and ("Not pasted" in said or "Nothing to paste" in said)
    assert visible(said) == said


def _stopped_run(desk, *rows):
    """A run whose data have sizes that no example has."""
    desk.engine.by_itself = False
    desk.do("run")
    job = desk.engine.requests[-1].job
    desk.session.apply(SizesWanted(job=job, rows=rows))
    desk.session.apply(JobFailed(job=job, problems=(Problem(code=ErrorCode.RECIPE, what="sizes"),)))
    desk.panel("shapes")


def test_rows_that_a_run_lacked_are_added_with_one_click(desk, shapes_panel):
    shapes_panel._use_rows()
    desk.settle()
    wanted = ({"pixels": TensorSpec(shape=(7, 1, 8, 8))}, {"pixels": TensorSpec(shape=(9, 1, 8, 8))})
    _stopped_run(desk, *wanted)
    assert "The data of the last run" in shapes_panel._doubt.text()
    desk.bot.mouseClick(shapes_panel.prove_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert [row["pixels"].shape[0] for row in desk.document.recipe.inputs.rows] == [16, 7, 9]
    assert "The data of the last run" not in shapes_panel._doubt.text() or not shapes_panel._proposal.isVisible()


def test_examples_of_a_function_get_the_sizes_of_the_data_with_one_click(desk, shapes_panel):
    _stopped_run(desk, {"pixels": TensorSpec(shape=(7, 1, 8, 8))})
    assert desk.document.failure is None  # the graph that is shown is whole
    desk.bot.mouseClick(shapes_panel.prove_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.recipe.inputs.shapes_from is ShapesFrom.DATA
    assert not shapes_panel._proposal.isVisible()
    (action,) = [one for one in shapes_panel.menu().actions() if one.text() == "Take sizes from the data"]
    action.trigger()
    assert desk.document.recipe.inputs.shapes_from is ShapesFrom.EXAMPLES


def test_verdicts_of_earlier_choices_say_so(desk, shapes_panel):
    desk.session.choices.set_dim("pixels.0", DimChoice.STATIC)
    desk.settle()
    assert "Trace again" in shapes_panel._source.text()


def test_examples_that_were_caught_are_named_and_can_become_rows(desk, shapes_panel):
    recipe = desk.document.recipe
    desk.session._state.choose("caught inputs", change(recipe, "inputs", tracing="", rows=(), caught="caught/train"))
    desk.do("trace")
    assert "the calls that were caught (caught/train)" in shapes_panel._source.text()
    desk.bot.mouseClick(shapes_panel.use_rows_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.recipe.inputs.caught == ""
    assert desk.document.recipe.inputs.rows


def cells(shapes_panel):
    return {column.name: at for at, column in enumerate(shapes_panel.table.columns)}


def test_usual_sizes_add_rows(desk, shapes_panel):
    shapes_panel._use_rows()
    desk.settle()
    batch, sequence, _ = shapes_panel.sizes_button.menu().actions()
    assert not sequence.isEnabled()
    batch.trigger()
    desk.settle()
    assert [row["pixels"].shape[0] for row in desk.document.recipe.inputs.rows] == [16, 1, 8, 32]


def test_a_row_that_would_prove_the_batch_is_one_click_away(desk, shapes_panel, monkeypatch):
    shapes_panel._use_rows()
    desk.settle()
    capture = desk.document.capture
    dim = replace(capture.inputs[0].dims[0], verified_sizes=(16,))
    finding = replace(capture.inputs[0], dims=(dim, *capture.inputs[0].dims[1:]))
    desk.session._state.change(capture=replace(capture, inputs=(finding,)), captured_with=desk.document.recipe)
    desk.settle()
    assert shapes_panel.prove_button.text() == "Add a row with 5"
    desk.bot.mouseClick(shapes_panel.prove_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert [row["pixels"].shape[0] for row in desk.document.recipe.inputs.rows] == [16, 5]


def test_a_tuple_is_chosen_in_the_menu_of_its_group(desk, shapes_panel):
    shapes_panel._use_rows()
    rows = ({"state.0": TensorSpec(shape=(1,)), "state.1": TensorSpec(shape=(1,))},)
    desk.session.choices.set_rows(rows)
    desk.settle()
    shapes_panel.table.setCurrentIndex(shapes_panel.table.model().index(0, 0))
    trigger(shapes_panel.menu(), "Pass state as a tuple")
    desk.settle()
    assert desk.document.recipe.inputs.tuples == ("state",)


def test_sizes_that_targets_are_built_for_are_typed_below_a_free_dimension(desk, shapes_panel):
    desk.session.choices.set_targets(["tensorrt"])
    desk.settle()
    model = shapes_panel.table.model()
    place = model.index(model.rowCount() - 1, cells(shapes_panel)["pixels.0"])
    assert model.headerData(place.row(), Qt.Orientation.Vertical) == "built for"
    assert place.data() == "auto"
    assert not model.setData(place, "4 1 8")
    assert model.setData(place, "1 4 8")
    desk.settle()
    assert desk.document.recipe.targets.sizes == {"pixels.0": (1, 4, 8)}
    assert place.data() == "1 · 4 · 8"


def test_catching_inputs_starts_beside_the_table(desk, shapes_panel):
    desk.bot.mouseClick(shapes_panel.catch_button, Qt.MouseButton.LeftButton)
    (dialog,) = [one for one in desk.window.findChildren(CatchDialog) if one.isVisible()]
    dialog.close()


def test_examples_that_came_with_the_model_can_become_rows(desk, shapes_panel):
    recipe = desk.document.recipe
    desk.session._state.choose("no examples", change(recipe, "inputs", tracing="", rows=(), caught=""))
    desk.do("trace")
    assert "came with the model" in shapes_panel._source.text()
    desk.bot.mouseClick(shapes_panel.use_rows_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert [row["pixels"].shape[0] for row in desk.document.recipe.inputs.rows] == [16]


def graph_of(*rows):
    """A graph of (id, kind, operator, dtype, weights) rows, each reading the one before it."""
    columns = list(zip(*rows, strict=True))
    count = len(rows)
    blank = dict.fromkeys(("module", "shape", "device"), ("",) * count)
    zero = dict.fromkeys(("file", "line", "flops", "weight_bytes", "output_bytes"), (0,) * count)
    edges = {"edge_source": tuple(range(count - 1)), "edge_target": tuple(range(1, count))}
    names = ("op_id", "kind", "op", "dtype", "weights")
    return GraphTable(**dict(zip(names, columns, strict=True)), **blank, **zero, **edges)


def test_the_rows_of_an_embedding_are_found_for_the_input_that_indexes_it():
    graph = graph_of(
        ("flag", OpKind.INPUT, "input", "", ""),
        ("ids", OpKind.INPUT, "input", "int64", ""),
        ("embedding", OpKind.OP, "aten.embedding.default", "float32", "embed.weight 50x16 float32"),
    )
    assert embedding_rows(graph, [InputFinding(name="batch.ids", dtype="int64", dims=())]) == {"batch.ids": 50}


def test_sizes_for_targets_are_asked_for_where_a_chosen_target_is_built_for_them():
    def of(*names, **more):
        return Document(recipe=Recipe(targets=TargetsChoice(names=names, **more)))

    assert wants_sizes(of("tensorrt"))
    assert not wants_sizes(of("openvino"))
    assert wants_sizes(of("openvino", sizes={"x.0": (1, 4, 8)}))
