"""The files of a sweep: ``sweep.json``, ``sweep.csv``, ``sweep.parquet``, and the report in one file."""

import importlib.util
import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from ace_studio.records.errors import visible
from ace_studio.records.report_page import page_environment
from ace_studio.records.results.words import ms_words
from ace_studio.records.safe_file import write_atomically
from ace_studio.records.spreadsheet import spreadsheet_text
from ace_studio.records.sweeps import SWEEP_NAME, Axis, RowStatus, SweepReport, SweepRow, with_front
from ace_studio.records.time_words import seconds_words
from ace_studio.sweeps.heat import heat_maps

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


_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 760, 360, 70, 44, 46
_DOT = " \u00b7 "
_INK, _FAINT, _FRONT, _OTHER = "#1f2933", "#616e7c", "#0b7285", "#9aa5b1"


@dataclass(frozen=True)
class Plot:
    """One picture: latency against accuracy of rows that may be compared."""

    title: str
    svg: str


def report_html(report: SweepReport) -> str:
    """The report of a sweep, as text."""
    axes = list(dict.fromkeys(axis for row in report.rows for axis in row.axes))
    counts = Counter(str(row.status) for row in report.rows)
    measured = [row for row in report.rows if row.status is RowStatus.DONE and row.latency_ms is not None]
    plots, maps = list(_plots(measured)), heat_maps(measured)
    environment = page_environment(Path(__file__).parent)
    environment.filters |= {"axis": _axis_words, "took": seconds_words}
    template = environment.get_template("sweep.html.j2")
    return template.render(report=report, axes=axes, counts=counts, plots=plots, maps=maps)


def _axis_words(value: object) -> str:
    """A value of an axis; a table without its quotes and braces, so that a narrow column can break it."""
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return str(value)
    found = msgspec.json.decode(value)
    words = [f"{key} {one}" for key, one in found.items()] if isinstance(found, dict) else map(str, found)
    return ", ".join(words)


def _plots(rows: Sequence[SweepRow]) -> Iterator[Plot]:
    """One picture per machine and shape, where more than one row can be compared; and one for each of its recipes."""
    groups: dict[tuple[str, str], list[SweepRow]] = {}
    for row in rows:
        groups.setdefault((row.host, str(row.axes.get(Axis.SHAPE, ""))), []).append(row)
    for (host, shape), group in groups.items():
        by_metric = all(row.metric is not None for row in group)
        points = [(row, row.metric if by_metric else row.sqnr_db) for row in group]
        shown = [(row, value) for row, value in points if value is not None and math.isfinite(value)]
        if len(shown) > 1:
            name = "metric" if by_metric else "fidelity, dB"
            words = ["Latency and accuracy", *(word for word in (host, shape) if word and len(groups) > 1)]
            yield Plot(_DOT.join(words), _scatter(shown, name))
            recipes = Counter(row.recipe for row, _ in shown)
            for recipe in recipes if len(recipes) > 1 else ():
                own = {row.job: row for row in with_front([row for row, _ in shown if row.recipe == recipe])}
                if len(own) > 1:
                    alone = [(own[row.job], value) for row, value in shown if row.job in own]
                    yield Plot(_DOT.join([*words, f"{recipe} alone"]), _scatter(alone, name))


def _scatter(points: Sequence[tuple[SweepRow, float]], name: str) -> str:
    """An SVG: milliseconds on a logarithmic axis to the right, accuracy upwards; filled points are on the front."""
    times = [math.log10(row.latency_ms or 1e-9) for row, _ in points]
    values = [value for _, value in points]
    left, right = min(times), max(*times, min(times) + 0.05)
    low, high = min(values), max(values)
    low -= 0.0 if high > low else 1.0  # all on the upper edge
    width, height = _WIDTH - _LEFT - 30, _HEIGHT - _BOTTOM - _TOP

    def at(row: SweepRow, value: float) -> tuple[float, float]:
        x = _LEFT + (math.log10(row.latency_ms or 1e-9) - left) / (right - left) * width
        return x, _TOP + (high - value) / (high - low) * height

    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" role="img" font-size="12" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-label="Latency against {name}" font-family="DejaVu Sans, sans-serif">'
    )
    parts = [
        begin,
        f'<path d="M{_LEFT - 8},{_TOP - 8} V{_HEIGHT - _BOTTOM + 8} H{_WIDTH - 10}" fill="none" stroke="{_FAINT}"/>',
        _words(_LEFT, _HEIGHT - 10, f"p50, ms: {10**left:.3g} to {10**right:.3g}, logarithmic; lower is better"),
        _words(4, _TOP + 4, f"{high:.4g}"),
        _words(4, _TOP + 4 + height, f"{low:.4g}" if min(values) < max(values) else ""),
        _words(4, 12, f"{name}, upwards; filled: on the front"),
    ]
    front = sorted(at(row, value) for row, value in points if row.on_front)
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in front)
    parts.append(f'<polyline points="{line}" fill="none" stroke="{_FRONT}" stroke-dasharray="3 3"/>')
    above = True
    for row, value in sorted(points, key=lambda one: (one[0].on_front, at(*one))):
        x, y = at(row, value)
        fill = f'fill="{_FRONT}"' if row.on_front else f'fill="white" stroke="{_OTHER}" stroke-width="1.5"'
        about = " ".join(f"{axis} {word}" for axis, word in row.axes.items())
        took = f"{row.target} {row.precision}, {ms_words(row.latency_ms)} ms"
        title = f"job {row.job}: {row.recipe} {about}; {took}, {value:.4g}"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {fill}><title>{escape(visible(title))}</title></circle>')
        if row.on_front:
            anchor, beside = ("end", -8) if x > _WIDTH - 120 else ("start", 8)
            parts.append(_words(x + beside, y + (-6 if above else 16), row.job, anchor=anchor))
            above = not above  # neighbours would lie on each other
    return "\n".join([*parts, "</svg>"])


def _words(x: float, y: float, words: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{_INK}" text-anchor="{anchor}">{escape(visible(words))}</text>'
