"""Rows of a sweep whose ``device`` axis names a device of the user's list: the figures of that device, no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.jobs.devices.measuring import measure_on
from ace_studio.records.devices import Device, is_device_name
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.results import Result
from ace_studio.records.results.on_devices import figure_on, speedup_on
from ace_studio.records.sweeps import Axis, RowStatus, SweepRow
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
    """The devices of one sweep. Jobs that differ in the device only are one run, measured on each of them."""

    def __init__(self, rows: list[SweepRow], history: History, *, locks: tuple[str, ...], trust: bool) -> None:
        """``locks``: locked while a device of this machine measures. ``trust``: whether all artifacts may be opened.

        Raises: AceError(NOT_FOUND) for a device that is not in the list.
        """
        kept = DeviceList.of_user()
        self._devices: dict[str, Device] = {name: kept.get(name) for row in rows if (name := device_of(row))}
        self._history, self._locks, self._trusts_all = history, locks, trust
        self._store = TrustStore(UserFolders.of_user().trust)

    def is_known(self, row: SweepRow, folder: Path) -> bool:
        """Whether the run of a row was measured on its device already."""
        try:
            result = run_in(folder)
        except AceError:
            return False
        return result.chosen is not None and figure_on(result.runs[result.chosen], device_of(row)) is not None

    def measured(self, row: SweepRow, folder: Path, *, tell: Callable[[str], None]) -> SweepRow:
        """A finished row with the figures of its device; failed, with the reason, if there are none.

        ``folder`` has the run's result and artifacts; the figures are kept there.
        """
        row = replace(row, **dict.fromkeys(_CLOCKS))
        try:
            result = run_in(folder)
            if not self.is_known(row, folder):
                result = self._measure(result, device_of(row), folder, tell)
        except AceError as error:
            return replace(row, status=RowStatus.FAILED, host="", error=error.problem)
        return _row_on(row, result, device_of(row))

    def _measure(self, result: Result, name: str, folder: Path, tell: Callable[[str], None]) -> Result:
        """Measure the chosen run, and beside it the fp32 runs of its target, which it is compared with."""
        chosen = result.chosen
        if chosen is None:
            raise AceError.of(ErrorCode.NOT_FOUND, "The run chose nothing that could be measured")
        target = result.runs[chosen].target
        floats = [at for at, run in enumerate(result.runs) if (run.target, run.precision) == (target, "fp32")]
        indices = (chosen, *(at for at in floats if at != chosen and result.runs[at].artifact))

        def told(event: dict[str, Any]) -> None:
            tell(f"on {name}: {event.get('why') or event['detail']}")

        known = trust_in(folder, self._history, self._store)
        measured = measure_on(
            self._devices[name],
            result,
            folder,
            indices=indices,
            is_trusted=lambda sha256: self._trusts_all or known(sha256),
            tell=told,
            locks=self._locks,
        )
        if chosen in measured.problems:
            raise AceError(measured.problems[chosen])
        return keep_figures(folder, result, measured.figures, self._history)


def _row_on(row: SweepRow, result: Result, name: str) -> SweepRow:
    assert result.chosen is not None
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
