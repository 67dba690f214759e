"""How a stage tells where it is, and learns that it should stop."""

from __future__ import annotations

from collections.abc import Callable

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Event, Phase, Progress
from ace_studio.records.results import Warning


class Cancelled(AceError):  # noqa: N818 - not a failure, an answer
    """Raised at a safe point after somebody asked to stop."""


class Reporter:
    """Passes progress and findings on, and raises `Cancelled` at every report once a stop was asked for.

    A stage calls `phase` when it starts something, `advance` as it goes, and `check` in loops that have nothing
    to say. All three are cheap. ``warnings`` collects what a person should know but need not act on.
    """

    def __init__(
        self,
        emit: Callable[[Event], None] = lambda _event: None,
        *,
        job: str = "",
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._emit = emit
        self._is_cancelled = is_cancelled
        self._phase = Phase.START
        self.job = job
        self.warnings: list[Warning] = []

    def quiet(self) -> Reporter:
        """One that tells nobody anything, and stops when this one does."""
        return Reporter(job=self.job, is_cancelled=self._is_cancelled)

    def emit(self, event: Event) -> None:
        """Send a finding on (an `ModelCaptured`, a `TargetFinished`, ...)."""
        self.check()
        self._emit(event)

    def tell(self, event: Event) -> None:
        """Send a finding on whether or not somebody asked to stop; any thread may call this."""
        self._emit(event)

    @property
    def current_phase(self) -> Phase:
        """The phase that was said last."""
        return self._phase

    def phase(self, phase: Phase, detail: str = "") -> None:
        """Say that a phase begins."""
        self._phase = phase
        self.advance(None, detail)

    def advance(self, fraction: float | None, detail: str = "") -> None:
        """Say how far the phase is (0..1, or None if nobody can tell)."""
        self.emit(Progress(job=self.job, phase=self._phase, detail=detail, fraction=fraction))

    def warn(self, code: str, what: str, *, where: str = "") -> None:
        """Keep a warning for the result; the same one is kept once."""
        warning = Warning(code=code, what=what, where=where)
        if warning not in self.warnings:
            self.warnings.append(warning)

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked to stop."""
        return self._is_cancelled()

    def check(self) -> None:
        """Raise `Cancelled` if somebody asked to stop."""
        if self.is_cancelled:
            raise Cancelled.of(ErrorCode.CANCELLED, "The job was cancelled")
