"""Measures the artifacts of a run on a device, and asks a device what it has."""

import math
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ace_studio.jobs.devices.android import check_android, measure_android
from ace_studio.jobs.devices.conversation import Started, Told, as_document, contents_of, talk
from ace_studio.jobs.devices.order import make_order
from ace_studio.records.devices import Device, DeviceCheck, DeviceKind
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.results import DeviceFigure, Latency, Result
from ace_studio.records.sending import Word
from ace_studio.records.targets import TARGET_ROWS

BUSY_SHARE = 0.85
"""Less of a core's time than this in a fifth of the rounds means that other work had it; as the engine has it."""
SLOWER_SHARE = 0.9
"""Frequency after over before; below it, the processor was throttled meanwhile."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What a measurement gave, by the index of the run."""

    figures: dict[int, DeviceFigure]
    problems: dict[int, Problem]


def measure_on(
    device: Device,
    result: Result,
    folder: Path,
    *,
    indices: tuple[int, ...] = (),
    is_trusted: Callable[[str], bool] = lambda _sha256: False,
    tell: Told = lambda _event: None,
    started: Started = lambda _process: None,
    word: Word | None = None,
) -> Measured:
    """Measure the artifacts of a finished run on a device, all in the same rounds.

    Args:
        device: Where.
        result: The run's result; its ``folder`` is not looked at.
        folder: The run's output folder, which holds the artifacts.
        indices: Which of its runs; all that have an artifact if none is named.
        is_trusted: Whether an artifact that holds code may be opened, by its SHA-256.
        tell: Gets progress and waiting, as `measure_there` says them.
        started: Gets the process, so that it can be ended from another thread.
        word: What the user named by hand to be sent.

    Raises: AceError if there is nothing to measure, or the device cannot be used.
    """
    is_here = device.kind is DeviceKind.LOCAL
    place = "" if is_here else device.name
    order = make_order(result, folder, indices, is_trusted=is_trusted, device=place, word=word)
    measured = Measured(figures={}, problems=dict(order.problems))
    if not order.artifacts:
        return measured
    session, date = secrets.token_hex(8), datetime.now(UTC).isoformat(timespec="seconds")
    hashes = {one.index: one.files[0].sha256 for one in order.artifacts}

    def take(event: dict[str, Any]) -> None:
        if event["kind"] == "figure":
            index = int(event["index"])
            measured.figures[index] = figure_of(
                event, device=device.name, session=session, date=date, threads=order.threads, sha256=hashes[index]
            )
        elif event["kind"] == "failed":
            problem = _problem(event)
            if event["index"] is None:
                raise AceError(problem)
            measured.problems[int(event["index"])] = problem
        else:
            tell(event)

    if device.kind is DeviceKind.ADB:
        measure_android(device, order, tell=take, started=started)
        return measured
    document = as_document(order, is_here=is_here)
    talk(device, document, contents_of(order), tell=take, started=started)
    return measured


def check_device(device: Device, *, started: Started = lambda _process: None) -> DeviceCheck:
    """What a device has for measuring. Raises: AceError if it cannot be reached, or has no Python."""
    begin, found = time.perf_counter(), list[dict[str, Any]]()
    wanted = {name: name for row in TARGET_ROWS.values() for name in row.packages}
    if device.kind is DeviceKind.ADB:
        check_android(device, tell=found.append, started=started)
    else:
        talk(device, {"check": True, "wanted": wanted}, {}, tell=found.append, started=started)
    told = found[0]
    return DeviceCheck(
        name=device.name,
        machine=told["machine"],
        version=told["version"],
        runtimes=told["runtimes"],
        missing=told["missing"],
        governor=told["state"]["governor"],
        frequency_mhz=told["state"]["frequency_mhz"],
        temperature_c=told["state"]["temperature_c"],
        seconds=time.perf_counter() - begin,
    )


def _problem(event: dict[str, Any]) -> Problem:
    what, why, remedy = (str(event[name]) for name in ("what", "why", "remedy"))
    return Problem(code=ErrorCode(event["code"]), what=what, why=why, remedy=remedy)


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
