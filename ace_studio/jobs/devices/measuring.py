"""Measures the artifacts of a run on a device, and asks a device what it has."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ace_studio.jobs.devices.android import check_android, measure_android
from ace_studio.jobs.devices.conversation import Started, Told, as_document, contents_of, talk
from ace_studio.jobs.devices.figures import figure_of
from ace_studio.jobs.devices.order import make_order
from ace_studio.records.devices import Device, DeviceCheck, DeviceKind
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.results import DeviceFigure, Result
from ace_studio.records.sending import Word
from ace_studio.records.targets import TARGET_ROWS


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
