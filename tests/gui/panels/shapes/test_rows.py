"""Rows of the shape table as data: columns, editing, pasting. No widgets."""

import pytest

from ace_studio.gui.panels.shapes.rows import (
    ColumnKind,
    InputSpec,
    ShapeColumn,
    add_input,
    cell_fault,
    cell_text,
    parse_shape,
    paste,
    remove_input,
    shape_columns,
    with_cell,
    with_cells,
)
from ace_studio.records.tensors import TensorSpec
from tests.gui.shape_findings import ROW, SIZE_0

NESTED = {
    "batch.ids": TensorSpec(shape=(1, 16), dtype="int64"),
    "scale": TensorSpec(shape=(), values="value 2.0"),
    "batch.mask": TensorSpec(shape=(16,)),
    "bias": TensorSpec(shape=(), values="none"),
}


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
    rows, fault = paste([ROW], "2\t4\n8\t16\n", columns, at=(0, 0))
    assert fault == ""
    assert [row["x"].shape for row in rows] == [(2, 4), (8, 16)]
    assert rows[1]["mask"] == ROW["mask"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hello", "'hello' is no size"),
        ("5\n-1", "example 2, x · 0"),
        ("\t".join("123456789"), "9 columns do not fit"),
        ("", "no text"),
    ],
)
def test_a_paste_that_does_not_fit_changes_nothing_and_says_why(text, why):
    rows, fault = paste([ROW], text, shape_columns([ROW], []), at=(0, 0))
    assert rows == (ROW,)
    assert why in fault


def test_a_text_goes_into_several_cells_where_it_is_valid():
    columns = shape_columns([ROW], [])
    rows = with_cells([ROW, ROW], [(0, columns[0]), (1, columns[0])], "9")
    assert [row["x"].shape[0] for row in rows] == [9, 9]
    assert "choose one of float32" in cell_fault(ROW, ShapeColumn(input="x", kind=ColumnKind.DTYPE), "float")


def test_inputs_come_and_go_in_all_rows():
    rows = add_input([ROW, ROW], InputSpec(name="y", shape=(2,), dtype="int64"))
    assert all(cell_text(row, ShapeColumn(input="y", kind=ColumnKind.DTYPE)) == "int64" for row in rows)
    assert remove_input(rows, "y") == (ROW, ROW)
    assert remove_input([{"x": ROW["x"]}], "x") == ()


def test_inputs_of_a_group_stand_together_and_plain_values_have_no_sizes():
    names = [column.name for column in shape_columns([NESTED], [])]
    assert names == [
        "batch.ids.0", "batch.ids.1", "batch.ids.dtype", "batch.ids.values", "batch.mask.0", "batch.mask.dtype",
        "batch.mask.values", "scale.dtype", "scale.values", "bias.dtype", "bias.values",
    ]  # fmt: skip


def test_a_folded_group_is_one_column_that_sums_it_up():
    first, *rest = shape_columns([NESTED], [], folded={"batch"})
    assert (first.kind, cell_text(NESTED, first)) == (ColumnKind.FOLDED, "ids 1x16 int64, mask 16 float32")
    assert "batch" not in {column.group for column in rest}
    assert "unfold it" in cell_fault(NESTED, first, "3")


def test_several_sizes_typed_at_once_replace_the_rest_of_the_shape():
    assert with_cell(ROW, SIZE_0, "2x5x5")["x"].shape == (2, 5, 5)
    assert with_cell(ROW, SIZE_0, "4x") is None


def test_none_takes_the_shape_away_and_a_size_then_has_no_place():
    values = ShapeColumn(input="x", kind=ColumnKind.VALUES)
    row = with_cell(ROW, values, "none")
    assert (row["x"].shape, row["x"].values, cell_text(row, SIZE_0)) == ((), "none", "")
    assert "is a Python value here" in cell_fault(row, SIZE_0, "3")


@pytest.mark.parametrize(
    ("text", "why"), [("random 5", "two numbers"), ("zeroes", "neither a known source"), ("data.npz:x", "")]
)
def test_values_that_nothing_can_read_say_why(text, why):
    fault = cell_fault(ROW, ShapeColumn(input="x", kind=ColumnKind.VALUES), text)
    assert why in fault
    assert bool(fault) is bool(why)
