"""Runs as points of the charts: their figures, names and colours, and the front of a trade-off."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtGui import QColor

from ace_studio.gui.style import Colours
from ace_studio.records.results import Baseline, Latency, RunStatus, TargetRun
from ace_studio.session.comparison.sides import NAMES
from ace_studio.session.document import Document

BASELINE = " (baseline)"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run, or the baseline, as the charts see it."""

    name: str
    latency: Latency | None
    metric: float | None
    sqnr_db: float | None
    size_bytes: int | None
    run: int | None
    """Index of the run; None for the baseline."""

    @property
    def short_name(self) -> str:
        """Without the remark that it is the baseline."""
        return self.name.removesuffix(BASELINE)


def points_of(document: Document) -> list[Point]:
    """The baseline and every run that was built."""
    found = [] if document.baseline is None else [_baseline_point(document.baseline)]
    if document.comparison is not None:
        results = zip(NAMES, (side.result for side in document.comparison.sides), strict=True)
        found = [
            _baseline_point(result.baseline, f"{name}: ") for name, result in results if result and result.baseline
        ]
    names = run_names(document)
    for at, run in enumerate(document.runs):
        if run.status in {RunStatus.OK, RunStatus.DROPPED}:
            found.append(
                Point(
                    name=names[at],
                    latency=run.latency_ms,
                    metric=run.metric,
                    sqnr_db=run.fidelity,
                    size_bytes=run.size_bytes,
                    run=at,
                )
            )
    return found


def run_names(document: Document) -> list[str]:
    """The name of each run: its target; with the precision and a number where several runs share them.

    While A and B are compared, each begins with the name of its side.
    """
    found = document.comparison
    if found is not None:
        count = found.run_count
        return [
            f"{name}: {each}"
            for name, runs in zip(NAMES, (document.runs[:count], document.runs[count:]), strict=True)
            for each in _names(runs)
        ]
    return _names(document.runs)


def _names(runs: Sequence[TargetRun]) -> list[str]:
    targets = Counter(run.target for run in runs)
    full = Counter((run.target, run.precision) for run in runs)
    seen: Counter[tuple[str, str]] = Counter()
    names = []
    for run in runs:
        key = (run.target, run.precision)
        seen[key] += 1
        number = f" {seen[key]}" if full[key] > 1 else ""
        names.append(run.target if targets[run.target] == 1 else f"{run.target} {run.precision}{number}")
    return names


def _baseline_point(baseline: Baseline, prefix: str = "") -> Point:
    return Point(
        name=f"{prefix}{baseline.name}{BASELINE}",
        latency=baseline.latency_ms,
        metric=baseline.metric,
        sqnr_db=None,
        size_bytes=baseline.size_bytes or None,
        run=None,
    )


def colour_of(run: int | None, document: Document, colours: Colours) -> str:
    """The colour of a run follows from its row, so that all plots agree; the selected run has the accent."""
    if run is None:
        return colours.text_dim
    if run == document.selection.run:
        return colours.accent
    return QColor(colours.series[(run + 1) % len(colours.series)]).name()


def front_of(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the points that no other beats in both (less is better in both), from the cheapest on."""
    best, front = float("inf"), []
    for at in sorted(range(len(points)), key=points.__getitem__):
        if points[at][1] < best:
            best = points[at][1]
            front.append(at)
    return front
