"""Two results side by side: what differs in their figures, with intervals; and what differs in two recipes."""

import math
from collections.abc import Callable
from typing import Any

import msgspec

from ace_studio.records.goals import EQUAL
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Baseline, Latency, Result, RunStatus, TargetRun

_RESAMPLES = 500


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One figure in both runs, and the change from the first to the second with its 95 % interval."""

    first: float | None = None
    second: float | None = None
    change: float | None = None
    """A ratio (second / first) of latencies and sizes, a difference (second - first) of everything else."""
    low: float | None = None
    high: float | None = None
    is_clear: bool = False
    """Whether the interval leaves out "no change"; without an interval, whether the values differ."""


class ComparedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target with one precision in both runs, or the baseline."""

    name: str
    runs: tuple[int | None, int | None] = (None, None)
    """Index of the run in either result; None for the baseline, and where a result has no such run."""
    latency: Difference
    speedup: Difference
    float_speedup: Difference = Difference()
    metric: Difference
    sqnr: Difference
    size: Difference


class RecipeChange(msgspec.Struct, frozen=True, kw_only=True):
    """One choice that differs between two recipes."""

    name: str
    first: str
    second: str


def compared_rows(first: Result, second: Result) -> tuple[ComparedRow, ...]:
    """The baseline, then every target and precision that either result has.

    The machine may have been slower at one time: an interval of a latency is widened by what the baseline changed.
    """
    drift = 1.0
    if first.baseline and second.baseline and first.baseline.latency_ms and second.baseline.latency_ms:
        drift = second.baseline.latency_ms.p50 / first.baseline.latency_ms.p50
    rows = []
    if first.baseline or second.baseline:
        rows.append(_row("baseline", first.baseline, second.baseline, drift=1.0))
    found, other = _by_name(first), _by_name(second)
    for name in [name for name in found if name not in other]:
        # One target with another precision is compared with itself if nothing else fits it, a lone run with the other.
        is_pair = len(first.runs) == len(second.runs) == 1
        fitting = [each for each in other if each not in found and (is_pair or each.split()[0] == name.split()[0])]
        if fitting:
            is_same = fitting[0].split()[0] == name.split()[0]
            joined = f"{name} → {fitting[0].partition(' ')[2] if is_same else fitting[0]}"
            found[joined], other[joined] = found.pop(name), other.pop(fitting[0])
    for name in {**found, **other}:
        at = found.get(name), other.get(name)
        one = None if at[0] is None else first.runs[at[0]]
        rows.append(_row(name, one, None if at[1] is None else second.runs[at[1]], drift=drift, runs=at))
    return tuple(rows)


def recipe_changes(first: Recipe, second: Recipe) -> tuple[RecipeChange, ...]:
    """The choices that differ, in the order of the recipe."""
    flat = [_flat("", msgspec.to_builtins(recipe)) for recipe in (first, second)]
    return tuple(
        RecipeChange(name=_words(key), first=_said(flat[0].get(key)), second=_said(flat[1].get(key)))
        for key in {**flat[0], **flat[1]}
        if flat[0].get(key) != flat[1].get(key)
    )


def _by_name(result: Result) -> dict[str, int]:
    """Indices of the runs by target and precision; of several the one that was chosen, else the fastest."""
    found: dict[str, int] = {}
    ranked = sorted(
        enumerate(result.runs),
        key=lambda one: (one[0] != result.chosen, one[1].latency_ms.p50 if one[1].latency_ms else math.inf),
    )
    for at, run in ranked:
        if run.status in {RunStatus.OK, RunStatus.DROPPED}:
            found.setdefault(f"{run.target} {run.precision}".strip(), at)
    return dict(sorted(found.items()))


_Side = TargetRun | Baseline | None


def _row(
    name: str, first: _Side, second: _Side, *, drift: float, runs: tuple[int | None, int | None] = (None, None)
) -> ComparedRow:
    def of(key: str) -> tuple[Any, Any]:
        return getattr(first, key, None), getattr(second, key, None)

    return ComparedRow(
        name=name,
        runs=runs,
        latency=latency_difference(*of("latency_ms"), drift=drift),
        speedup=_speedup_difference(first, second, "speedup"),
        float_speedup=_speedup_difference(first, second, "float_speedup"),
        metric=_metric_difference(first, second),
        sqnr=_difference(*of("fidelity"), lambda one, other: other - one),
        size=_difference(*of("size_bytes"), lambda one, other: other / one if one else 1.0, same=1.0),
    )


def latency_difference(first: Latency | None, second: Latency | None, *, drift: float = 1.0) -> Difference:
    """The ratio of the medians with its interval, widened by `EQUAL` and by ``drift`` (a ratio) to either side."""
    if first is None or second is None:
        return Difference(first=first.p50 if first else None, second=second.p50 if second else None)
    low, high = _ratio_interval(first, second)
    widening = EQUAL * max(drift, 1 / drift)
    low, high = low / widening, high * widening
    return Difference(
        first=first.p50, second=second.p50, change=second.p50 / first.p50, low=low, high=high,
        is_clear=not low <= 1 <= high,
    )  # fmt: skip


def _ratio_interval(first: Latency, second: Latency) -> tuple[float, float]:
    if len(first.samples) < 5 or len(second.samples) < 5:
        return second.p10 / first.p90, second.p90 / first.p10
    from random import Random  # noqa: PLC0415 - these two take long to import, and the window starts without them
    from statistics import median, quantiles  # noqa: PLC0415

    draws = Random(0)

    def resampled(latency: Latency) -> float:
        return median(draws.choices(latency.samples, k=len(latency.samples)))

    # The first and the last of 39 cut points leave out 2.5 % at either end.
    low, *_, high = quantiles((resampled(second) / resampled(first) for _ in range(_RESAMPLES)), n=40)
    return low, high


def _speedup_difference(first: _Side, second: _Side, name: str) -> Difference:
    """The ratio of the speed-ups. Each was measured beside its own baseline, so a slower machine matters less."""
    if not isinstance(first, TargetRun) or not isinstance(second, TargetRun):
        return Difference()
    (one, one_low, one_high), (other, other_low, other_high) = (
        [getattr(side.decided, name + end) for end in ("", "_low", "_high")] for side in (first, second)
    )
    found = _difference(one, other, lambda one, other: other / one, same=1.0)
    if found.change is None or not all((one_low, one_high, other_low, other_high)):
        return found
    low, high = other_low / one_high, other_high / one_low
    return msgspec.structs.replace(found, low=low, high=high, is_clear=not low <= 1 <= high)


def _metric_difference(first: _Side, second: _Side) -> Difference:
    """Both intervals together: no pairs of samples are known across runs."""
    found = _difference(getattr(first, "metric", None), getattr(second, "metric", None), lambda one, other: other - one)
    if found.change is None or first is None or second is None:
        return found
    halves = [(one.metric_high - one.metric_low) / 2 for one in (first, second)
              if one.metric_low is not None and one.metric_high is not None]  # fmt: skip
    if len(halves) < 2:
        return found
    half = math.hypot(*halves)
    return msgspec.structs.replace(
        found, low=found.change - half, high=found.change + half, is_clear=abs(found.change) > half
    )


def _difference(
    first: float | None, second: float | None, change_of: Callable[[float, float], float], *, same: float = 0.0
) -> Difference:
    if first is None or second is None:
        return Difference(first=first, second=second)
    change = change_of(first, second)
    return Difference(first=first, second=second, change=change, is_clear=not math.isclose(change, same, abs_tol=1e-9))


def _flat(prefix: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        return {prefix: value}
    parts = (_flat(f"{prefix}.{key}" if prefix else str(key), inner) for key, inner in value.items())
    return {key: inner for part in parts for key, inner in part.items()}


def _words(key: str) -> str:
    section, _, rest = key.partition(".")
    return f"{section}: {rest.replace('_', ' ').replace('.', ', ')}" if rest else section.replace("_", " ")


def _said(value: object) -> str:
    if value in (None, "", (), []):
        return "nothing"
    if isinstance(value, list | tuple):
        parts = [_said(one) for one in value[:6]]
        more = f" and {len(value) - 6} more" if len(value) > 6 else ""
        return "; ".join(parts) + more
    if isinstance(value, dict):
        return ", ".join(f"{key.replace('_', ' ')} {_said(one)}" for key, one in value.items() if one not in ("", None))
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
