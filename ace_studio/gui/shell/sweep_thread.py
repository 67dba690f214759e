"""The link to the process of a sweep: it is started here, and what it tells comes as signals on the main thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from ace_studio.records.sweeps import SweepOrder

if TYPE_CHECKING:
    from ace_studio.jobs.sweep_process import SweepProcess


class SweepThread(QObject):
    """Owns the process of the sweep, at most one; the session's `SweepLink`."""

    received = Signal(object)
    """A `SweepEvent` or the `SweepEnded`, on the thread that this object lives on."""
    _arrived = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._process: SweepProcess | None = None
        self._arrived.connect(self.received, Qt.ConnectionType.QueuedConnection)

    def start(self, order: SweepOrder) -> None:
        """Start a sweep. Raises: OSError if its process cannot be started."""
        from ace_studio.jobs.sweep_process import SweepProcess  # noqa: PLC0415 - not needed for the first picture

        self._process = SweepProcess(order, self._arrived.emit)

    def stop(self) -> None:
        """Ask the sweep to stop and to keep what is done; nothing happens if none runs."""
        if self._process is not None:
            self._process.stop()
