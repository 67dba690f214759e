"""The inputs panel: one row per example, and below every dimension its verdict."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from ace_studio.records.tensors import DimChoice
from ace_studio.session.choices import change


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
