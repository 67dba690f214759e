"""How long each phase of a job takes, and what the same job of this model took the last time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ace_studio.records.errors import AceError
from ace_studio.records.messages import Phase, Progress
from ace_studio.session.document import Document, JobKind, StepTime
from ace_studio.session.kept.settings import Settings
from ace_studio.session.run_preview import BUILDS

_KEY = "step-seconds"
_MODELS_KEPT = 50


class StepTimes:
    """Follows one job at a time. A phase that comes several times is one step."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._job = ""
        self._spent: dict[Phase, float] = {}
        self._usual: Mapping[str, float] = {}
        self._now: Phase | None = None
        self._since_s = 0.0

    def heard(self, event: Progress, document: Document) -> tuple[StepTime, ...]:
        """The steps after this event: the same object if the phase goes on."""
        if event.job != self._job:
            self._job, self._spent, self._now = event.job, {}, None
            self._usual = self.usual(document, document.activity.verb)
        elif event.phase is self._now:
            return document.steps
        self._close()
        self._now = event.phase
        self._spent.setdefault(event.phase, 0.0)
        return self._steps()

    def ended(self, document: Document, *, is_finished: bool) -> tuple[StepTime, ...]:
        """The steps after the end of the job; those of a finished one are what the next is expected to take."""
        self._close()
        self._now = None
        if is_finished and self._spent:
            result = document.result
            tried = sum(step.run is None for step in result.search) if result else 0
            builds = len(document.runs) + tried
            own = _name(document, document.activity.verb)
            kept = {name: value for name, value in self._kept().items() if name != own}
            spent = {phase.name: round(seconds, 2) for phase, seconds in self._spent.items()} | {BUILDS: builds}
            newest = dict([*kept.items(), (own, spent)][-_MODELS_KEPT:])
            with suppress(AceError):  # the next forecast is not worth a message
                self._settings.remember(_KEY, newest)
        steps = self._steps() if self._job else ()
        self._job = ""
        return steps

    def usual(self, document: Document, verb: JobKind) -> Mapping[str, float]:
        """Seconds of each phase of the last job of this kind with this model, by its name; and its builds."""
        found = self._kept().get(_name(document, verb))
        return found if isinstance(found, dict) else {}

    def _kept(self) -> dict[str, Any]:
        found = self._settings.recall(_KEY)
        return found if isinstance(found, dict) else {}

    def _close(self) -> None:
        now_s = self._clock()
        if self._now is not None:
            self._spent[self._now] += now_s - self._since_s
        self._since_s = now_s

    def _steps(self) -> tuple[StepTime, ...]:
        """In the order in which they began; those that are still expected last."""
        to_come = (phase for phase in Phase if phase.name in self._usual and phase not in self._spent)
        return tuple(
            StepTime(
                phase=phase,
                seconds=self._spent.get(phase),
                usual_s=self._usual.get(phase.name),
                since_s=self._since_s if phase is self._now else None,
            )
            for phase in (*self._spent, *(to_come if self._now is not None else ()))
        )


def _name(document: Document, verb: JobKind) -> str:
    return f"{verb} {document.folder}/{document.recipe.model.source}"
