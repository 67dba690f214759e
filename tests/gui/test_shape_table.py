"""The shape table: rows as data, verdicts in words, and the panel around them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from ace_studio.gui.panels.shapes.faults import refused_rows, size_faults
from ace_studio.gui.panels.shapes.rows import (
    ColumnKind,
    InputSpec,
    ShapeColumn,
    add_input,
    cell_text,
    parse_shape,
    paste,
    remove_input,
    shape_columns,
    with_cell,
)
from ace_studio.gui.panels.shapes.verdicts import chip_of, next_choice
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, InputFinding, TensorSpec
from ace_studio.session.choices import change

ROW = {"x": TensorSpec(shape=(1, 3)), "mask": TensorSpec(shape=(3,), dtype="bool", values="zeros")}
SIZE_0 = ShapeColumn(input="x", kind=ColumnKind.DIM, index=0)


def finding(verdict, **more):
    dim = DimFinding(index=0, verdict=verdict, size=3, **more)
    return [InputFinding(name="x", dtype="float32", dims=(dim,))]


def test_columns_are_every_dimension_then_type_and_values_of_every_input():
    names = [column.name for column in shape_columns([ROW], [])]
    assert names == ["x.0", "x.1", "x.dtype", "x.values", "mask.0", "mask.dtype", "mask.values"]


@pytest.mark.parametrize("text", ["1x3x8", "1, 3, 8", "(1 3 8)", "[1, 3, 8]", "1 × 3 × 8"])
def test_a_shape_is_understood_however_it_is_written(text):
    assert parse_shape(text) == (1, 3, 8)


def test_a_shape_with_a_letter_in_it_is_none():
    assert parse_shape("1xax8") is None


def test_a_size_can_be_changed_added_at_the_end_and_cleared():
    assert with_cell(ROW, SIZE_0, "7")["x"].shape == (7, 3)
    beyond = ShapeColumn(input="x", kind=ColumnKind.DIM, index=2)
    assert with_cell(ROW, beyond, "9")["x"].shape == (1, 3, 9)
    second = ShapeColumn(input="x", kind=ColumnKind.DIM, index=1)
    assert with_cell(ROW, second, "")["x"].shape == (1,)


@pytest.mark.parametrize("text", ["-1", "many", "1.5"])
def test_what_is_no_size_is_not_taken(text):
    assert with_cell(ROW, SIZE_0, text) is None


def test_a_block_from_a_spreadsheet_fills_cells_and_adds_rows():
    columns = shape_columns([ROW], [])
    rows = paste([ROW], "2\t4\n8\t16\n", columns, at=(0, 0))
    assert [row["x"].shape for row in rows] == [(2, 4), (8, 16)]
    assert rows[1]["mask"] == ROW["mask"]


def test_text_that_fits_nowhere_changes_nothing():
    assert paste([ROW], "hello", shape_columns([ROW], []), at=(0, 0)) is None


def test_inputs_come_and_go_in_all_rows():
    rows = add_input([ROW, ROW], InputSpec(name="y", shape=(2,), dtype="int64"))
    assert all(cell_text(row, ShapeColumn(input="y", kind=ColumnKind.DTYPE)) == "int64" for row in rows)
    assert remove_input(rows, "y") == (ROW, ROW)
    assert remove_input([{"x": ROW["x"]}], "x") == ()


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (finding(DimVerdict.STATIC), "static 3"),
        (finding(DimVerdict.DYNAMIC, symbol="s0", min=2, max=512), "dynamic s0 in [2, 512]"),
        (finding(DimVerdict.DYNAMIC, symbol="s0", min=2), "dynamic s0 ≥ 2"),
        (finding(DimVerdict.DYNAMIC, symbol="s0", equal_to="ids.1"), "equal to ids.1"),
        (finding(DimVerdict.UNKNOWN), "only ever 1: try another size"),
    ],
)
def test_a_verdict_is_said_in_a_few_words(found, text):
    assert chip_of(SIZE_0, [ROW], found, dims={}).text == text


def test_before_a_trace_the_chip_says_what_the_examples_let_expect():
    rows = [{"x": TensorSpec(shape=(size,))} for size in (2, 5)]
    assert chip_of(SIZE_0, rows, [], dims={}).text == "will be dynamic"
    assert chip_of(SIZE_0, rows[:1], [], dims={}).text == "will be static"
    assert "another size" in chip_of(SIZE_0, [ROW], [], dims={}).text
    assert chip_of(SIZE_0, rows, [], dims={"x.0": DimChoice.STATIC}).text == "static (asked)"


def test_choices_cycle_back_to_auto():
    assert [next_choice(None), next_choice(DimChoice.DYNAMIC), next_choice(DimChoice.STATIC)] == [
        DimChoice.DYNAMIC,
        DimChoice.STATIC,
        DimChoice.AUTO,
    ]


@pytest.fixture
def panel(desk):
    desk.traced()
    return desk.panel("shapes")


def test_rows_of_ones_own_start_from_what_was_traced(desk, panel):
    desk.bot.mouseClick(panel.use_rows_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.recipe.inputs.tracing == ""
    assert desk.document.recipe.inputs.rows[0]["pixels"].shape == (16, 1, 8, 8)


def test_a_click_on_a_verdict_asks_for_dynamic_and_enter_for_static(desk, panel):
    table = panel.table
    index = table.model().index(1, 2)
    desk.bot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(index).center())
    desk.settle()
    assert desk.document.recipe.inputs.dims == {"pixels.2": DimChoice.DYNAMIC}
    table.setCurrentIndex(index)
    desk.bot.keyClick(table, Qt.Key.Key_Return)
    desk.settle()
    assert desk.document.recipe.inputs.dims == {"pixels.2": DimChoice.STATIC}


def test_rows_are_added_edited_pasted_and_removed(desk, panel):
    panel._use_rows()
    desk.settle()
    desk.bot.mouseClick(panel.add_row_button, Qt.MouseButton.LeftButton)
    desk.settle()
    model = panel.table.model()
    assert model.setData(model.index(1, 0), "3")
    desk.settle()
    assert [row["pixels"].shape[0] for row in desk.document.recipe.inputs.rows] == [16, 3]
    panel.table.setCurrentIndex(model.index(0, 0))
    QApplication.clipboard().setText("5\n6\n7")
    panel.paste()
    desk.settle()
    assert [row["pixels"].shape[0] for row in desk.document.recipe.inputs.rows] == [5, 6, 7]
    desk.bot.mouseClick(panel.remove_row_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert len(desk.document.recipe.inputs.rows) == 2


def test_a_shape_that_is_none_is_marked_and_adds_nothing(desk, panel):
    panel._use_rows()
    desk.settle()
    before = desk.document.recipe
    panel.form.shape.setText("3xx?")
    panel.form.add()
    assert panel.form.shape.property("role") == "bad"
    assert desk.document.recipe == before


def test_verdicts_of_earlier_choices_say_so(desk, panel):
    desk.session.choices.set_dim("pixels.0", DimChoice.STATIC)
    desk.settle()
    assert "Trace again" in panel._source.text()


# --- rows that the graph does not take ---


def dims_of(*dims):
    return (InputFinding(name="x", dtype="float32", dims=dims),)


def dynamic(index, **more):
    return DimFinding(index=index, verdict=DimVerdict.DYNAMIC, size=4, symbol="s0", **more)


@pytest.mark.parametrize(
    ("dim", "words"),
    [
        (
            DimFinding(index=0, verdict=DimVerdict.STATIC, size=3),
            "the graph holds size 3 here: trace again with this row",
        ),
        (dynamic(0, min=8), "the graph holds for s0 ≥ 8 only"),
        (dynamic(0, max=4), "the graph holds for s0 ≤ 4 only"),
        (dynamic(0, equal_to="x.1"), "the graph needs the same size as x.1, which is 7 here"),
        (dynamic(0, min=2, max=64), ""),
    ],
)
def test_a_size_that_breaks_a_guard_is_named_with_the_guard(dim, words):
    row = {"x": TensorSpec(shape=(5, 7))}
    assert size_faults(row, dims_of(dim)).get("x.0", "") == words


def test_rows_that_no_graph_took_say_which_method_refused_them_and_why():
    refusal = Problem(code=ErrorCode.WRONG_CAPTURE, what="forward() takes another path on example 2", why="x.0 != 3")
    rungs = (
        CaptureAttempt(name="export", status=AttemptStatus.WRONG, error=refusal, refused_example=2),
        CaptureAttempt(name="fx", status=AttemptStatus.FAILED),
    )
    assert refused_rows(rungs) == {1: "export: forward() takes another path on example 2. x.0 != 3"}
    assert refused_rows((*rungs, CaptureAttempt(name="dynamo", status=AttemptStatus.OK))) == {}


def test_a_row_that_breaks_a_guard_is_red_says_so_and_is_fine_again_after_an_edit(desk, panel):
    desk.bot.mouseClick(panel.use_rows_button, Qt.MouseButton.LeftButton)
    desk.settle()
    first = desk.document.recipe.inputs.rows[0]
    ((name, spec),) = first.items()
    wrong = {name: replace(spec, shape=(*spec.shape[:-1], spec.shape[-1] + 3))}
    desk.session.choices.set_rows((first, wrong))
    desk.settle()
    last = f"{name}.{len(spec.shape) - 1}"
    assert panel.table.fault_text(0, last) == ""
    assert "the graph holds size" in panel.table.fault_text(1, last)
    model = panel.table.model()
    assert model.headerData(1, Qt.Orientation.Vertical, Qt.ItemDataRole.DisplayRole) == "✕ example 2"
    assert last in model.headerData(1, Qt.Orientation.Vertical, Qt.ItemDataRole.ToolTipRole)
    at = next(index for index, column in enumerate(panel.table.columns) if column.name == last)
    brush = model.data(model.index(1, at), Qt.ItemDataRole.ForegroundRole)
    assert brush.color().name() == desk.window.theme.colours.bad
    desk.session.choices.set_rows((first, first))
    desk.settle()
    assert panel.table.fault_text(1, last) == ""


def test_a_dimension_that_batch_only_holds_says_held():
    why = "held static at 64 by batch_only, as in the first example"
    held = DimFinding(index=0, verdict=DimVerdict.STATIC, size=64, reason=why, is_held=True)
    chip = chip_of(SIZE_0, [ROW], dims_of(held), dims={})
    assert (chip.text, chip.mood) == ("held at 64", "held")


def test_examples_that_were_caught_are_named_and_can_become_rows(desk, panel):
    recipe = desk.document.recipe
    desk.session._state.choose("caught inputs", change(recipe, "inputs", tracing="", rows=(), caught="caught/train"))
    desk.do("trace")
    assert "the calls that were caught (caught/train)" in panel._source.text()
    desk.bot.mouseClick(panel.use_rows_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.recipe.inputs.caught == ""
    assert desk.document.recipe.inputs.rows
