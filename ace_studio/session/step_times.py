"""How long each phase of a job takes, and what the same job of this model took the last time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ace_studio.records.errors import AceError
from ace_studio.records.messages import Phase, Progress
from ace_studio.session.document import Document, StepTime
from ace_studio.session.kept.settings import Settings

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
            found = self._kept().get(_name(document))
            self._usual = found if isinstance(found, dict) else {}
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
            kept = {name: value for name, value in self._kept().items() if name != _name(document)}
            spent = {phase.name: round(seconds, 2) for phase, seconds in self._spent.items()}
            newest = dict([*kept.items(), (_name(document), spent)][-_MODELS_KEPT:])
            with suppress(AceError):  # the next forecast is not worth a message
                self._settings.remember(_KEY, newest)
        steps = self._steps() if self._job else ()
        self._job = ""
        return steps

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


def _name(document: Document) -> str:
    return f"{document.activity.verb} {document.folder}/{document.recipe.model.source}"
