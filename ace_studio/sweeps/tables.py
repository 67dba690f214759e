"""The files of a sweep: ``sweep.json``, ``sweep.csv``, ``sweep.parquet``, and the report in one file."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

import msgspec

from ace_studio.records.safe_file import write_atomically
from ace_studio.records.spreadsheet import spreadsheet_text
from ace_studio.records.sweeps import SWEEP_NAME, SweepReport, SweepRow
from ace_studio.sweeps.report import report_html

CSV_NAME, PARQUET_NAME, HTML_NAME = "sweep.csv", "sweep.parquet", "sweep.html"
_NOT_IN_TABLES = ("axes", "error", "warnings")


def write_tables(report: SweepReport, folder: Path) -> None:
    """Write all files of a sweep, each atomically. Raises: OSError.

    Parquet is written where pyarrow is installed.
    """
    write_atomically(folder / SWEEP_NAME, msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    rows = [flat_row(row) for row in report.rows]
    columns = _columns(rows)
    table = [columns, *([row.get(name, "") for name in columns] for row in rows)]
    write_atomically(folder / CSV_NAME, spreadsheet_text(table).encode())
    if importlib.util.find_spec("pyarrow") is not None:
        write_atomically(folder / PARQUET_NAME, _parquet(rows))
    write_atomically(folder / HTML_NAME, report_html(report).encode())


def flat_row(row: SweepRow) -> dict[str, Any]:
    """A row as plain columns: one per axis, the codes of warnings in one text, and what went wrong in words."""
    plain = {name: value for name, value in msgspec.to_builtins(row).items() if name not in _NOT_IN_TABLES}
    first = {name: plain.pop(name) for name in ("job", "recipe")}
    axes = {f"axis.{axis}": value for axis, value in row.axes.items()}
    return first | axes | plain | {"warnings": " ".join(row.warnings), "error": row.error.what if row.error else ""}


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow  # type: ignore[import-untyped]  # noqa: PLC0415 - optional, and slow to import
    from pyarrow import parquet  # noqa: PLC0415

    columns = {name: [row.get(name) for row in rows] for name in _columns(rows)}
    for name, values in columns.items():
        if name.startswith("axis.") and len({type(value) for value in values}) > 1:
            columns[name] = [str(value) for value in values]  # a column has one type: "all" beside 4
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()
