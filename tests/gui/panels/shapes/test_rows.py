"""Rows of the shape table as data: columns, editing, pasting. No widgets."""

from __future__ import annotations

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
from tests.gui.shape_findings import ROW, SIZE_0


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
        ("5\n-1", "line 2, x · 0"),
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
