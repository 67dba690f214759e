"""Rows of a sweep whose ``device`` axis names a device of the user's list: the figures of that device, no others."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from msgspec.structs import replace

from ace_studio.jobs.devices.measuring import Measured, measure_on
from ace_studio.records.devices import Device, is_device_name
from ace_studio.records.errors import AceError, ErrorCode, Problem, message_of
from ace_studio.records.messages import Phase
from ace_studio.records.results import Result
from ace_studio.records.results.on_devices import figure_on, speedup_on
from ace_studio.records.sending import Word
from ace_studio.records.sweeps import Axis, JobAdvanced, RowStatus, SweepRow
from ace_studio.session.device_figures import keep_figures, run_in, trust_in
from ace_studio.session.kept.devices import DeviceList
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.history import History
from ace_studio.session.kept.trust import TrustStore

_CLOCKS = (
    "latency_ms", "latency_p10_ms", "latency_p90_ms", "baseline_ms", "speedup", "speedup_low", "speedup_high",
    "float_speedup", "float_speedup_low", "float_speedup_high",
)  # fmt: skip
"""Figures of the clock that the run itself was measured by."""


def device_of(row: SweepRow) -> str:
    """The device of the list that a row names; empty for a row that the run itself measures."""
    word = row.axes.get(Axis.DEVICE, "")
    return str(word) if is_device_name(word) else ""


class SweepDevices:
    """The devices of one sweep. Jobs that differ in the device only are one run, measured on each of them.

    Each device has a thread, so that devices measure at the same time and nobody waits for them. Files, the history and
    what is reported belong to the thread that calls these methods.
    """

    def __init__(self, rows: list[SweepRow], history: History, *, trust: bool, word: Word) -> None:
        """``trust``: whether all artifacts may be opened.

        ``word``: what may be sent.

        Raises: AceError(NOT_FOUND) for a device that is not in the list.
        """
        kept = DeviceList.of_user()
        self._devices: dict[str, Device] = {name: kept.get(name) for row in rows if (name := device_of(row))}
        self._history, self._trusts_all, self._word = history, trust, word
        self._store = TrustStore(UserFolders.of_user().trust)
        self._orders: dict[str, queue.SimpleQueue[_Order | None]] = {}
        self._came: queue.SimpleQueue[tuple[_Order, str | Measured | AceError]] = queue.SimpleQueue()
        self._wanted: dict[_Order, list[SweepRow]] = {}
        """The rows that each measurement is for, until it came."""
        self._processes: dict[str, Popen[bytes]] = {}
        self._is_stopped = False

    @property
    def is_busy(self) -> bool:
        """Whether measurements were asked for that did not come yet."""
        return bool(self._wanted)

    @property
    def jobs(self) -> set[str]:
        """The jobs whose figures did not come yet."""
        return {row.job for rows in self._wanted.values() for row in rows}

    def known(self, row: SweepRow, folder: Path) -> SweepRow | None:
        """A finished row with the figures of its device; None if it was not measured there.

        ``folder`` has the run's result and artifacts; the figures are kept there.
        """
        try:
            result = run_in(folder)
        except AceError:
            return None
        is_there = result.chosen is not None and figure_on(result.runs[result.chosen], device_of(row)) is not None
        return _row_on(row, result) if is_there else None

    def measure(self, row: SweepRow, folder: Path) -> None:
        """Ask the device of a finished row to measure its run; `take` gives the row."""
        order = _Order(device_of(row), folder)
        if order in self._wanted:
            self._wanted[order].append(row)
            return
        self._wanted[order] = [row]
        if order.device not in self._orders:
            self._orders[order.device] = queue.SimpleQueue()
            threading.Thread(target=self._serve, args=(order.device,), daemon=True).start()
        self._orders[order.device].put(order)

    def take(self, timeout_s: float) -> Iterator[SweepRow | JobAdvanced]:
        """What came: progress, and rows with the figures of their device, or failed with the reason."""
        found = []
        with suppress(queue.Empty):
            found.append(self._came.get(timeout=timeout_s) if timeout_s else self._came.get_nowait())
            while True:
                found.append(self._came.get_nowait())
        for order, what in found:
            if isinstance(what, str):
                for row in self._wanted[order]:
                    yield JobAdvanced(job=row.job, phase=str(Phase.MEASURE), detail=f"on {order.device}: {what}")
                continue
            rows = self._wanted.pop(order)
            try:
                result = self._kept(order, what)
            except AceError as error:
                bare = dict.fromkeys(_CLOCKS) | {"status": RowStatus.FAILED, "host": "", "error": error.problem}
                yield from (replace(row, **bare) for row in rows)
            else:
                yield from (_row_on(row, result) for row in rows)

    def _kept(self, order: _Order, what: Measured | AceError) -> Result:
        if isinstance(what, AceError):
            raise what
        result = run_in(order.folder)
        if result.chosen in what.problems:
            raise AceError(what.problems[result.chosen])
        return keep_figures(order.folder, result, what.figures, self._history)

    def stop(self) -> None:
        """End the measurements that run, and forget those that wait."""
        self._is_stopped = True
        for orders in self._orders.values():
            orders.put(None)
        for process in list(self._processes.values()):
            with suppress(OSError):
                process.kill()
        self._wanted.clear()

    # --- in the thread of a device ---

    def _serve(self, name: str) -> None:
        while (order := self._orders[name].get()) is not None and not self._is_stopped:
            try:
                self._came.put((order, self._measured(order)))
            except AceError as error:
                self._came.put((order, error))
            except OSError as error:
                self._came.put((order, AceError.of(ErrorCode.SYSTEM, f"{name} gave no figure", why=message_of(error))))

    def _measured(self, order: _Order) -> Measured:
        """Measure the chosen run, and beside it the fp32 runs of its target, which it is compared with."""
        result = run_in(order.folder)
        chosen = result.chosen
        if chosen is None:
            raise AceError.of(ErrorCode.NOT_FOUND, "The run chose nothing that could be measured")
        target = result.runs[chosen].target
        floats = [at for at, run in enumerate(result.runs) if run.target == target and run.is_exact]
        indices = (chosen, *(at for at in floats if at != chosen and result.runs[at].artifact))

        def told(event: dict[str, Any]) -> None:
            self._came.put((order, str(event.get("why") or event["detail"])))

        known = trust_in(order.folder, self._history, self._store)
        return measure_on(
            self._devices[order.device],
            result,
            order.folder,
            indices=indices,
            is_trusted=lambda sha256: self._trusts_all or known(sha256),
            tell=told,
            started=self._started(order.device),
            word=self._word,
        )

    def _started(self, name: str) -> Callable[[Popen[bytes]], None]:
        def started(process: Popen[bytes]) -> None:
            self._processes[name] = process
            if self._is_stopped:
                process.kill()

        return started


@dataclass(frozen=True)
class _Order:
    device: str
    folder: Path
    """Of the run: its result and artifacts."""


def _row_on(row: SweepRow, result: Result) -> SweepRow:
    assert result.chosen is not None
    name = device_of(row)
    row = replace(row, speed_undecided="", **dict.fromkeys(_CLOCKS))
    figure = figure_on(result.runs[result.chosen], name)
    if figure is None:
        problem = Problem(code=ErrorCode.NOT_FOUND, what=f"{name} gave no figure", remedy="Run the sweep again")
        return replace(row, status=RowStatus.FAILED, host="", error=problem)
    return replace(
        row,
        host=f"{name}: {figure.machine}",  # rows are compared with those of the same host only
        latency_ms=figure.latency_ms.p50,
        latency_p10_ms=figure.latency_ms.p10,
        latency_p90_ms=figure.latency_ms.p90,
        float_speedup=speedup_on(result.runs, result.chosen, name),
    )
