"""The widget of the shape table: example rows to edit, then the verdicts and the verified sizes."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtCore import Qt

from ace_studio.gui.panels.shapes.verdicts import chip_of
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict
from tests.gui.shape_findings import ROW, SIZE_0, dims_of


def test_a_click_on_a_verdict_asks_for_dynamic_and_enter_for_static(desk, shapes_panel):
    table = shapes_panel.table
    index = table.model().index(1, 2)
    desk.bot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(index).center())
    desk.settle()
    assert desk.document.recipe.inputs.dims == {"pixels.2": DimChoice.DYNAMIC}
    table.setCurrentIndex(index)
    desk.bot.keyClick(table, Qt.Key.Key_Return)
    desk.settle()
    assert desk.document.recipe.inputs.dims == {"pixels.2": DimChoice.STATIC}


def test_a_row_that_breaks_a_guard_is_red_says_so_and_is_fine_again_after_an_edit(desk, shapes_panel):
    desk.bot.mouseClick(shapes_panel.use_rows_button, Qt.MouseButton.LeftButton)
    desk.settle()
    first = desk.document.recipe.inputs.rows[0]
    ((name, spec),) = first.items()
    wrong = {name: replace(spec, shape=(*spec.shape[:-1], spec.shape[-1] + 3))}
    desk.session.choices.set_rows((first, wrong))
    desk.settle()
    last = f"{name}.{len(spec.shape) - 1}"
    assert shapes_panel.table.fault_text(0, last) == ""
    assert "the graph is fixed to size" in shapes_panel.table.fault_text(1, last)
    model = shapes_panel.table.model()
    assert model.headerData(1, Qt.Orientation.Vertical, Qt.ItemDataRole.DisplayRole) == "✕ example 2"
    assert last in model.headerData(1, Qt.Orientation.Vertical, Qt.ItemDataRole.ToolTipRole)
    at = next(index for index, column in enumerate(shapes_panel.table.columns) if column.name == last)
    brush = model.data(model.index(1, at), Qt.ItemDataRole.ForegroundRole)
    assert brush.color().name() == desk.window.theme.colours.bad
    desk.session.choices.set_rows((first, first))
    desk.settle()
    assert shapes_panel.table.fault_text(1, last) == ""


def test_a_dimension_that_batch_only_holds_says_held():
    why = "held static at 64 by batch_only, as in the first example"
    held = DimFinding(index=0, verdict=DimVerdict.STATIC, size=64, reason=why, is_held=True)
    chip = chip_of(SIZE_0, [ROW], dims_of(held), dims={})
    assert (chip.text, chip.mood) == ("held at 64", "held")
