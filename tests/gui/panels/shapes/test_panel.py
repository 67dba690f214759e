"""The inputs panel: one row per example, and below every dimension its verdict."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from ace_studio.gui.dialogs.catch import CatchDialog
from ace_studio.records.tensors import DimChoice, TensorSpec
from ace_studio.session.choices import change
from tests.gui.planning import trigger


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
