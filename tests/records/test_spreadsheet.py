"""No cell of a table for spreadsheets is a formula."""

import csv
import io
import re

import pytest

from ace_studio.records.spreadsheet import spreadsheet_rows, spreadsheet_text

FORMULAS = [
    '=HYPERLINK("http://x","click")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "-1.5.exe",
    "-1 A1",
    "-1 a(b)",
    "\uff1d1",
]


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_name_that_would_be_a_formula_is_text(text, separator):
    table = spreadsheet_text([["job", text]], separator=separator)
    ((_, cell),) = csv.reader(io.StringIO(table, newline=""), delimiter=separator)
    assert cell == f"'{text}"
    assert spreadsheet_rows(table, separator=separator) == [["job", text]]


@pytest.mark.parametrize(
    "value", ["-1", "+2.50", "-0.12%", "+1e-05", "-1,024", "-.5", "-inf", "-", "-3.2 dB", "+1.5 ms", "0.1", "", "a=b"]
)
def test_numbers_and_other_words_stay_what_they_are(value):
    assert spreadsheet_text([[value, "x"]]) == spreadsheet_text([[value + "", "x"]])
    assert spreadsheet_rows(spreadsheet_text([[value, "x"]]), separator=",") == [[value, "x"]]
    assert "'" not in spreadsheet_text([[value, -1.5, 3, None]])


def test_a_line_end_in_a_name_begins_no_row():
    table = spreadsheet_text([["a\n=1", "b\r=1", "\r=1"]], separator="\t")
    cells = [["a\n'=1", "b\\u000d=1", "\\u000d=1"]]
    assert list(csv.reader(io.StringIO(table, newline=""), delimiter="\t")) == cells


@pytest.mark.parametrize("text", ["x;=1+1;y", "x; @SUM(A1)", "x|-2+3", "a\n+1", "x;\uff1d1"])
def test_a_spreadsheet_that_takes_another_separator_finds_no_formula(text):
    table = spreadsheet_text([["job", text]])
    found = [cell for row in table.splitlines() for cell in re.split("[;|,]", row)]
    assert not any(cell.strip(' "').startswith(("=", "+", "-", "@", "\uff1d")) for cell in found)


def test_what_a_spreadsheet_copies_is_read():
    assert spreadsheet_rows("1\t2\r\n\t\r\n3\t4\n") == [["1", "2"], ["3", "4"]]
    assert spreadsheet_rows("x" * 200_000) == []
