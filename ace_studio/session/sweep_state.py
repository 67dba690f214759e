"""The sweep as the document has it: what it is to do, how far it is, and its rows."""

from enum import StrEnum

import msgspec

from ace_studio.records.errors import Problem
from ace_studio.records.sweeps import JobAdvanced, Sweep, SweepRow, SweepStatus


class SweepPhase(StrEnum):
    """Whether a sweep runs."""

    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"
    """Asked to stop: it ends its jobs and writes its files."""


class SweepState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the panel shows of a sweep."""

    sweep: Sweep = Sweep(recipes=())
    """Without recipes it is about the choices that are open."""
    path: str = ""
    """Absolute path of its file; empty if it has none."""
    text: str = ""
    """What is in that file: mistakes are reported with their line."""
    out: str = ""
    """Absolute folder for all results; empty for the usual one."""
    scheduler: str = ""
    workers: int = 0
    """Most jobs at once on this machine; 0: as many as cores and memory allow."""
    mlflow: str = ""
    """Address of an MLflow server, or of a store, to log the jobs to; empty: nowhere."""

    phase: SweepPhase = SweepPhase.IDLE
    started_s: float = 0.0
    """When it was started, on the session's clock."""
    at_work: dict[str, JobAdvanced] = {}
    """Jobs that run, by number."""
    rows: tuple[SweepRow, ...] = ()
    """Those that ended, as they came; all of them once the sweep has ended."""
    rows_of: str = ""
    """The folder that `rows` are in."""
    done: int = 0
    total: int = 0
    at_once: int = 0
    is_lost: bool = False
    """Whether the scheduler does not answer, and is looked for."""
    remaining_s: float | None = None
    status: SweepStatus | None = None
    """How the sweep with these rows ended; None if it goes on, or there is none."""
    problems: tuple[Problem, ...] = ()
    """Why the last one did not begin, or ended early."""

    @property
    def is_running(self) -> bool:
        """Whether a sweep runs or is being stopped."""
        return self.phase is not SweepPhase.IDLE


class SweepPreview(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep that has not started."""

    jobs: int = 0
    combinations: int = 0
    """Before some were excluded."""
    at_once: int = 1
    """Jobs that this machine would run at a time; on a scheduler one, because nobody knows its workers."""
    seconds: float | None = None
    """Of the jobs whose model ran before, by the median of its last runs; None if none of them did."""
    unknown: int = 0
    """Jobs of models that never ran here."""
    problems: tuple[Problem, ...] = ()
    """Why it cannot start; empty if it can."""
