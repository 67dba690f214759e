"""Reports progress of a stage, and asks it to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Event, Phase, Progress, WarningFound
from ace_studio.records.results import Warning


class Cancelled(AceError):  # noqa: N818 - no failure: the user asked for it
    """Raised at a safe point after a stop was requested."""


class Reporter:
    """Passes progress and findings on; once a stop was requested, every report raises `Cancelled`.

    A stage calls `phase` when it starts something, `advance` as it goes, and `check` in loops that have nothing
    to say. All three are cheap. ``warnings`` collects what a person should know but need not act on.
    """

    def __init__(
        self,
        emit: Callable[[Event], None] = lambda _event: None,
        *,
        job: str = "",
        is_cancelled: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._emit = emit
        self._is_cancelled = is_cancelled
        self._phase = Phase.START
        self._clock = clock
        self._since_s = clock()
        self._seconds: dict[Phase, float] = {}
        self.job = job
        self.phase_began: Callable[[Phase], None] = lambda _phase: None
        """Is called where a phase begins, before anything is done in it."""
        self.warnings: list[Warning] = []

    def quiet(self) -> Reporter:
        """A reporter that sends nothing, and stops when this one does."""
        return Reporter(job=self.job, is_cancelled=self._is_cancelled)

    def emit(self, event: Event) -> None:
        """Send a finding on (an `ModelCaptured`, a `TargetFinished`, ...)."""
        self.check()
        self._emit(event)

    def tell(self, event: Event) -> None:
        """Send a finding even after a stop was requested; any thread may call this."""
        self._emit(event)

    def phase(self, phase: Phase, detail: str = "") -> None:
        """Report that a phase begins."""
        self._count_time()
        self._phase = phase
        self.phase_began(phase)
        self.advance(None, detail)

    def seconds_by_phase(self) -> dict[str, float]:
        """What each phase has taken so far, by its name in small letters, in the order in which they first ended."""
        self._count_time()
        return {phase.name.lower(): round(seconds, 2) for phase, seconds in self._seconds.items() if seconds >= 0.005}

    def _count_time(self) -> None:
        now_s = self._clock()
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + now_s - self._since_s
        self._since_s = now_s

    def advance(self, fraction: float | None, detail: str = "") -> None:
        """Report the progress of the phase (0..1, or None if it is unknown)."""
        self.emit(Progress(job=self.job, phase=self._phase, detail=detail, fraction=fraction))

    def warn(self, code: str, what: str, *, where: str = "", options: Mapping[str, str] = {}) -> None:
        """Keep a warning for the result; repeated ones are kept once."""
        warning = Warning(code=code, what=what, where=where, options=dict(options))
        if warning not in self.warnings:
            self.warnings.append(warning)
            self.tell(WarningFound(job=self.job, warning=warning))

    @property
    def is_cancelled(self) -> bool:
        """Whether a stop was requested."""
        return self._is_cancelled()

    def check(self) -> None:
        """Raise `Cancelled` if a stop was requested."""
        if self.is_cancelled:
            raise Cancelled.of(ErrorCode.CANCELLED, "The job was cancelled")
