import csv
import json

import pytest

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.sweeps import RowStatus, SweepReport, SweepRow, SweepStatus
from ace_studio.sweeps.tables import write_tables

ROWS = (
    SweepRow(job="1", recipe="a.toml", axes={"threads": 1}, status=RowStatus.DONE, latency_ms=1.5, warnings=("a", "b")),
    SweepRow(
        job="2", recipe="a.toml", axes={"threads": "all"}, status=RowStatus.FAILED,
        error=Problem(code=ErrorCode.CRASH, what="It, \"crashed\""),
    ),
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    write_tables(SweepReport(status=SweepStatus.INCOMPLETE, rows=ROWS), tmp_path)
    return tmp_path


def test_the_json_has_a_row_per_job_with_its_axes(folder):
    found = json.loads((folder / "sweep.json").read_bytes())
    assert found["format"] == 1
    assert [row["axes"] for row in found["rows"]] == [{"threads": 1}, {"threads": "all"}]


def test_the_csv_has_a_column_per_axis_and_quotes_what_it_must(folder):
    with (folder / "sweep.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["axis.threads"], first["latency_ms"], first["warnings"]) == ("1", "1.5", "a b")
    assert (second["latency_ms"], second["error"]) == ("", 'It, "crashed"')


def test_parquet_has_the_same_columns_with_types(folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(folder / "sweep.parquet").to_pydict()
    assert table["latency_ms"] == [1.5, None]
    assert table["axis.threads"] == ["1", "all"]


def test_no_name_in_the_csv_is_a_formula(tmp_path):
    formula = '=HYPERLINK("http://x","see")'
    row = SweepRow(
        job="1", recipe=formula, axes={"plan": "@SUM(A1)", "threads": -1}, status=RowStatus.DONE, sqnr_db=-2.5
    )
    write_tables(SweepReport(status=SweepStatus.INCOMPLETE, rows=(row,)), tmp_path)
    with (tmp_path / "sweep.csv").open(newline="") as file:
        (found,) = csv.DictReader(file)
    assert (found["recipe"], found["axis.plan"]) == (f"'{formula}", "'@SUM(A1)")
    assert (found["axis.threads"], found["sqnr_db"]) == ("-1", "-2.5")
