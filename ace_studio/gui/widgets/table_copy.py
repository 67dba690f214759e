"""A table as text: Markdown for a document, CSV for a spreadsheet."""

from __future__ import annotations

import csv
import io

from ace_studio.gui.widgets.table_model import ColumnsModel


def cells_of(model: ColumnsModel) -> list[list[str]]:
    """The header and the visible rows, as shown."""
    header = [column.title for column in model.columns]
    shown = range(model.rowCount())
    return [header, *([str(model.index(at, place).data() or "") for place in range(len(header))] for at in shown)]


def as_markdown(model: ColumnsModel) -> str:
    """The visible rows as a Markdown table, numbers to the right."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in cells_of(model)]
    lines.insert(1, ["---:" if column.is_number else "---" for column in model.columns])
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


def as_csv(model: ColumnsModel) -> str:
    """The visible rows as CSV, as shown but numbers in full and without units; nothing is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(column.title for column in model.columns)
    for at in range(model.rowCount()):
        row = model.source_row(at)
        values = ((column, column.values[row]) for column in model.columns)
        writer.writerow(("" if value is None else value) if column.is_number else column.text(value)
                        for column, value in values)  # fmt: skip
    return text.getvalue()
