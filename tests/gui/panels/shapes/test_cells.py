"""The widget of the shape table: example rows to edit, then the verdicts and the verified sizes."""

from msgspec.structs import replace
from PySide6.QtCore import QItemSelection, QItemSelectionModel, Qt
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit

from ace_studio.gui.panels.shapes.verdicts import chip_of
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, TensorSpec
from tests.gui.panels.shapes.test_rows import NESTED
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

    def fault(row):
        return model.fault_of(row, next(one for one in model.columns if one.name == last))

    model = shapes_panel.table.model()
    assert fault(0) == ""
    assert "the graph is fixed to size" in fault(1)
    assert model.headerData(1, Qt.Orientation.Vertical, Qt.ItemDataRole.DisplayRole) == "✕ example 2"
    assert last in model.headerData(1, Qt.Orientation.Vertical, Qt.ItemDataRole.ToolTipRole)
    at = next(index for index, column in enumerate(shapes_panel.table.columns) if column.name == last)
    brush = model.data(model.index(1, at), Qt.ItemDataRole.ForegroundRole)
    assert brush.color().name() == desk.window.theme.colours.bad
    desk.session.choices.set_rows((first, first))
    desk.settle()
    assert fault(1) == ""


def test_a_dimension_that_batch_only_holds_says_held():
    why = "held static at 64 by batch_only, as in the first example"
    held = DimFinding(index=0, verdict=DimVerdict.STATIC, size=64, reason=why, is_held=True)
    chip = chip_of(SIZE_0, [ROW], dims_of(held), dims={})
    assert (chip.text, chip.mood) == ("held at 64", "held")


def own_rows(desk, shapes_panel, count):
    """Rows to edit, alike; returns the table and a function from row to the sizes of its input."""
    shapes_panel._use_rows()
    desk.session.choices.set_rows(desk.document.recipe.inputs.rows * count)
    desk.settle()
    shapes_panel.table.setFocus()
    return shapes_panel.table, lambda: [row["pixels"] for row in desk.document.recipe.inputs.rows]


def edit(desk, table, row, column):
    table.setCurrentIndex(table.model().index(row, column))
    desk.bot.keyClick(table, Qt.Key.Key_F2)


def select(table, first, last):
    chosen = QItemSelection(table.model().index(*first), table.model().index(*last))
    table.selectionModel().select(chosen, QItemSelectionModel.SelectionFlag.ClearAndSelect)


def test_types_and_values_are_chosen_from_lists(desk, shapes_panel):
    table, specs = own_rows(desk, shapes_panel, 1)
    for column, chosen in ((4, "int64"), (5, "ones")):
        edit(desk, table, 0, column)
        (combo,) = table.viewport().findChildren(QComboBox)
        combo.setCurrentText(chosen)
        combo.activated.emit(combo.currentIndex())
        desk.settle()
    assert (specs()[0].dtype, specs()[0].values) == ("int64", "ones")


def test_a_wrong_size_is_red_and_says_why_while_it_is_typed(desk, shapes_panel):
    table, specs = own_rows(desk, shapes_panel, 1)
    edit(desk, table, 0, 0)
    (line,) = table.viewport().findChildren(QLineEdit)
    line.selectAll()
    desk.bot.keyClicks(line, "4x")
    assert line.property("role") == "bad"
    assert "'4x' is no size" in line.toolTip()
    desk.bot.keyClick(line, Qt.Key.Key_Backspace)
    assert line.property("role") == ""
    desk.bot.keyClick(line, Qt.Key.Key_Return)
    desk.settle()
    assert specs()[0].shape[0] == 4


def test_an_edit_goes_into_every_selected_cell_of_its_kind(desk, shapes_panel):
    table, specs = own_rows(desk, shapes_panel, 3)
    table.setCurrentIndex(table.model().index(0, 2))
    select(table, (0, 2), (1, 4))
    table.model().setData(table.model().index(0, 2), "12")
    desk.settle()
    assert [spec.shape for spec in specs()] == [(16, 1, 12, 12), (16, 1, 12, 12), (16, 1, 8, 8)]
    assert {spec.dtype for spec in specs()} == {"float32"}


def test_cells_are_filled_down_and_copied(desk, shapes_panel):
    table, specs = own_rows(desk, shapes_panel, 3)
    table.model().setData(table.model().index(0, 0), "2")
    desk.settle()
    table.setCurrentIndex(table.model().index(0, 0))
    desk.bot.mouseClick(shapes_panel.fill_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert [spec.shape[0] for spec in specs()] == [2, 2, 2]
    select(table, (0, 0), (1, 1))
    desk.bot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "2\t1\n2\t1"


def test_a_paste_that_does_not_fit_says_why(desk, shapes_panel):
    table, specs = own_rows(desk, shapes_panel, 1)
    before = specs()
    table.setCurrentIndex(table.model().index(0, 0))
    QApplication.clipboard().setText("many")
    desk.bot.mouseClick(shapes_panel.paste_button, Qt.MouseButton.LeftButton)
    assert "Not pasted, nothing changed: 'many' is no size" in shapes_panel._source.text()
    assert specs() == before


def test_choosing_random_with_bounds_leaves_them_selected_to_be_typed(desk, shapes_panel):
    table, specs = own_rows(desk, shapes_panel, 1)
    edit(desk, table, 0, 5)
    (combo,) = table.viewport().findChildren(QComboBox)
    combo.setCurrentText("random 0..9")
    combo.activated.emit(combo.findText("random 0..9"))
    line = combo.lineEdit()
    assert line.selectedText() == "0..9"
    desk.bot.keyClicks(line, "0..x")
    assert combo.property("role") == "bad"
    assert "two numbers" in line.toolTip()
    desk.bot.keyClick(line, Qt.Key.Key_Backspace)
    desk.bot.keyClicks(line, "7")
    desk.bot.keyClick(line, Qt.Key.Key_Return)
    desk.settle()
    assert specs()[0].values == "random 0..7"


def shown(desk, shapes_panel, row):
    shapes_panel._use_rows()
    desk.session.choices.set_rows((row,))
    desk.settle()
    return shapes_panel.table


def test_a_click_on_a_group_folds_it_and_another_unfolds_it(desk, shapes_panel):
    table = shown(desk, shapes_panel, NESTED)
    before = len(table.columns)
    for count in (before - 6, before):
        place = dict(table.groups.group_places())["batch"]
        desk.bot.mouseClick(table.groups.viewport(), Qt.MouseButton.LeftButton, pos=place.center())
        desk.settle()
        assert len(table.columns) == count


def test_groups_stand_over_their_columns_and_tuples_say_so(desk, shapes_panel):
    table = shown(desk, shapes_panel, NESTED)
    places = dict(table.groups.group_places())
    assert list(places) == ["batch", "scale", "bias"]
    assert places["scale"].left() == table.groups.sectionViewportPosition(7)
    desk.session.choices.set_choice("inputs", tuples=("batch",))
    desk.settle()
    assert table.groups.group_text("batch") == "▾ batch (tuple)"


def test_a_group_of_many_inputs_is_folded_at_first(desk, shapes_panel):
    cache = {f"cache.{number}": TensorSpec(shape=(1, 2)) for number in range(8)}
    table = shown(desk, shapes_panel, {"x": TensorSpec(shape=(2,)), **cache})
    assert [column.name for column in table.columns] == ["x.0", "x.dtype", "x.values", "cache.folded"]
