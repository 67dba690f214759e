"""Single times of a device as a figure: percentiles, the interval of the median, and what makes it doubtful."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from ace_studio.records.results import DeviceFigure, Latency

BUSY_SHARE = 0.85
"""Less of a core's time than this in a fifth of the rounds means that other work had it; as the engine has it."""
SLOWER_SHARE = 0.9
"""Frequency after over before; below it, the processor was throttled meanwhile."""


def latency_of(wall_ms: Sequence[float], cpu_ms: Sequence[float] = ()) -> Latency:
    """Percentiles over the rounds, at least one."""
    return Latency(
        p10=percentile(wall_ms, 10),
        p50=percentile(wall_ms, 50),
        p90=percentile(wall_ms, 90),
        p99=percentile(wall_ms, 99),
        n=len(wall_ms),
        cpu_p50=statistics.median(cpu_ms) if cpu_ms else None,
        samples=tuple(round(one, 6) for one in wall_ms),
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile, linear between neighbours."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the median, from order statistics.

    Source: Conover 1999, Practical Nonparametric Statistics, section 3.2 (normal approximation of the binomial).
    """
    ordered, count = sorted(values), len(values)
    half = 1.96 * math.sqrt(count) / 2
    low, high = math.floor(count / 2 - half), math.ceil(count / 2 + half)
    return ordered[max(0, low)], ordered[min(count - 1, high)]


def figure_of(told: dict[str, Any], *, device: str, session: str, date: str, threads: int, sha256: str) -> DeviceFigure:
    """The figure that a device told (kind ``figure`` of ``measure_there.py``)."""
    low, high = median_interval(told["wall_ms"])
    before, after = told["before"], told["after"]
    return DeviceFigure(
        device=device,
        machine=str(told["machine"]),
        session=session,
        date=date,
        latency_ms=latency_of(told["wall_ms"], told["cpu_ms"]),
        low=low,
        high=high,
        threads=threads,
        runtime=str(told["runtime"]),
        sha256=sha256,
        governor=str(after["governor"]),
        frequency_mhz_before=before["frequency_mhz"],
        frequency_mhz=after["frequency_mhz"],
        temperature_c_before=before["temperature_c"],
        temperature_c=after["temperature_c"],
        note=doubt(told["wall_ms"], told["cpu_ms"], before["frequency_mhz"], after["frequency_mhz"]),
    )


def doubt(wall_ms: Sequence[float], cpu_ms: Sequence[float], mhz_before: float | None, mhz_after: float | None) -> str:
    """What makes the times doubtful, in one sentence; empty if nothing does."""
    shares = [cpu / wall for wall, cpu in zip(wall_ms, cpu_ms, strict=False) if wall > 0]  # a phone tells no CPU time
    share = percentile(shares, 20) if shares else 1.0
    if share < BUSY_SHARE:
        return f"other work was running: the process got {share:.0%} of one core's time in the disturbed rounds"
    if mhz_before and mhz_after and mhz_after < SLOWER_SHARE * mhz_before:
        return f"the processor became slower meanwhile: {mhz_before:.0f} to {mhz_after:.0f} MHz"
    return ""
