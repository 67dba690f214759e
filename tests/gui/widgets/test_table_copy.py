"""A table as text: Markdown for a document, CSV for a spreadsheet."""

from __future__ import annotations

from ace_studio.gui.widgets.table_copy import as_csv, as_markdown
from ace_studio.gui.widgets.table_model import Column, ColumnsModel


def table():
    model = ColumnsModel()
    model.set_columns(
        [
            Column(title="name", values=["a|b", "c, d"]),
            Column(title="ms", values=[1.23456, None], text=lambda time: "–" if time is None else f"{time:.1f}",
                   is_number=True),
        ]
    )  # fmt: skip
    return model


def test_markdown_shows_what_the_table_shows_with_numbers_to_the_right():
    assert as_markdown(table()) == "| name | ms |\n| --- | ---: |\n| a\\|b | 1.2 |\n| c, d | – |\n"


def test_csv_has_numbers_in_full_and_only_rows_that_the_filter_keeps():
    model = table()
    assert as_csv(model) == 'name,ms\na|b,1.23456\n"c, d",\n'
    model.set_filter("c, d")
    assert as_csv(model) == 'name,ms\n"c, d",\n'
