"""The report of a sweep: one HTML file without scripts or links to the outside; every name in it is escaped."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ace_studio.records.errors import visible
from ace_studio.records.report_page import page_environment
from ace_studio.records.sweeps import Axis, RowStatus, SweepReport, SweepRow
from ace_studio.sweeps.heat import heat_maps

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 760, 360, 70, 46
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
    template = page_environment(Path(__file__).parent).get_template("sweep.html.j2")
    return template.render(report=report, axes=axes, counts=counts, plots=plots, maps=maps)


def _plots(rows: Sequence[SweepRow]) -> Iterator[Plot]:
    """One picture per machine and shape, where more than one row can be compared."""
    groups: dict[tuple[str, str], list[SweepRow]] = {}
    for row in rows:
        groups.setdefault((row.host, str(row.axes.get(Axis.SHAPE, ""))), []).append(row)
    for (host, shape), group in groups.items():
        by_metric = all(row.metric is not None for row in group)
        points = [(row, row.metric if by_metric else row.sqnr_db) for row in group]
        shown = [(row, value) for row, value in points if value is not None and math.isfinite(value)]
        if len(shown) > 1:
            name = "metric" if by_metric else "fidelity, dB"
            words = [word for word in (host, shape) if word and len(groups) > 1]
            yield Plot(" \u00b7 ".join(["Latency and accuracy", *words]), _scatter(shown, name))


def _scatter(points: Sequence[tuple[SweepRow, float]], name: str) -> str:
    """An SVG: milliseconds on a logarithmic axis to the right, accuracy upwards; filled points are on the front."""
    times = [math.log10(row.latency_ms or 1e-9) for row, _ in points]
    values = [value for _, value in points]
    left, right = min(times), max(*times, min(times) + 0.05)
    low, high = min(values), max(*values, min(values) + 1e-9)
    width, height = _WIDTH - _LEFT - 30, _HEIGHT - _BOTTOM - 20

    def at(row: SweepRow, value: float) -> tuple[float, float]:
        x = _LEFT + (math.log10(row.latency_ms or 1e-9) - left) / (right - left) * width
        return x, 20 + (high - value) / (high - low) * height

    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" role="img" font-size="12" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-label="Latency against {name}" font-family="DejaVu Sans, sans-serif">'
    )
    parts = [
        begin,
        f'<path d="M{_LEFT - 8},12 V{_HEIGHT - _BOTTOM + 8} H{_WIDTH - 10}" fill="none" stroke="{_FAINT}"/>',
        _words(_LEFT, _HEIGHT - 10, f"p50, ms: {10**left:.3g} to {10**right:.3g}, logarithmic; lower is better"),
        _words(4, 14, f"{high:.4g}"),
        _words(4, 20 + height, f"{low:.4g}"),
        _words(_LEFT, 10, f"{name}; filled: on the front"),
    ]
    front = sorted(at(row, value) for row, value in points if row.on_front)
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in front)
    parts.append(f'<polyline points="{line}" fill="none" stroke="{_FRONT}" stroke-dasharray="3 3"/>')
    for row, value in points:
        x, y = at(row, value)
        fill = f'fill="{_FRONT}"' if row.on_front else f'fill="white" stroke="{_OTHER}" stroke-width="1.5"'
        about = " ".join(f"{axis} {word}" for axis, word in row.axes.items())
        title = (
            f"job {row.job}: {row.recipe} {about}; {row.target} {row.precision}, {row.latency_ms:.3g} ms, {value:.4g}"
        )
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {fill}><title>{escape(visible(title))}</title></circle>')
        if row.on_front:
            anchor = "end" if x > _WIDTH - 120 else "start"
            parts.append(_words(x + (8 if anchor == "start" else -8), y - 6, row.job, anchor=anchor))
    return "\n".join([*parts, "</svg>"])


def _words(x: float, y: float, words: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{_INK}" text-anchor="{anchor}">{escape(visible(words))}</text>'
