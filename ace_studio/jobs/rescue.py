"""Following a rung of the capture ladder from outside, and going on when it takes the engine process with it.

A rung runs in the worker, which says when it begins and how long it may take. If the process dies under it, or the
rung hangs in native code where nothing can interrupt it, the parent ends what is left of the process group, starts a
new worker and sends the request again with that rung noted as given up: the next rung runs in a fresh process. A rung
that was interrupted from inside leaves a process that cannot be relied on, and is followed by a new one too. Every
repetition gives up one rung more, so there is an end to it. `ace_studio.engine.capture.watched` has the other side,
and why not every rung has a process of its own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import (
    AnyEvent,
    AnyRequest,
    AttemptEnded,
    AttemptStarted,
    RunRequest,
    SensitivityRequest,
    TraceRequest,
)
from ace_studio.records.results import AttemptStatus, CaptureAttempt

RUNG_GRACE_S = 10.0
"""Seconds over its limit after which a rung does not react any more: interrupting Python code takes up to a few."""
_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)')
_NOT_THE_USERS = re.compile(
    r"[\\/](torch|ace_studio)[\\/]|[\\/]lib[\\/]python[\d.]+[\\/](?!site-packages|dist-packages)|^<"
)


@dataclass(frozen=True)
class Rescue:
    """How a job goes on after its process died."""

    request: TraceRequest
    lost: str
    """The rung that it goes on without."""
    outcome: CaptureAttempt | None
    """How that rung ended; None if that was told already."""


class AttemptWatch:
    """Which rung of the job at hand runs, until when, and how those before it ended. One per worker process."""

    def __init__(self, *, grace_s: float, overrun: Callable[[], None]) -> None:
        """``overrun`` is called, in another thread, when a rung is over its limit by ``grace_s``."""
        self._grace_s = grace_s
        self._overrun = overrun
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._running: AttemptStarted | None = None
        self._limit_s = 0.0
        self._has_overrun = False
        self._interrupted = ""
        self._ended: list[CaptureAttempt] = []

    @property
    def is_used_up(self) -> bool:
        """Whether a rung was interrupted in this process, which must not go on, nor be listened to."""
        return bool(self._interrupted)

    def heard(self, event: AnyEvent, request: AnyRequest | None) -> bool:
        """Take note of an event of the job at hand; whether the process is used up with it."""
        with self._lock:
            match event:
                case AttemptStarted(limit_s=limit_s):
                    self._running = event
                    self._set_timer(limit_s)
                case AttemptEnded(outcome=outcome):
                    self._running = None
                    self._ended = [one for one in self._ended if one.name != outcome.name] + [outcome]
                    self._set_timer(None)
                    if outcome.status is AttemptStatus.TIMEOUT and _goes_on_after(outcome.name, request):
                        self._interrupted = outcome.name
            return bool(self._interrupted)

    def forget(self) -> None:
        """The job has ended, or the process has."""
        with self._lock:
            self._running = None
            self._ended.clear()
            self._set_timer(None)

    def rescue(self, request: AnyRequest, problem: Problem) -> Rescue | None:
        """How the request goes on after the process died with ``problem``; None if no rung of it was running."""
        with self._lock:
            lost = self._interrupted or (self._running.name if self._running else "")
            if not lost or not _is_repeatable(request):
                return None
            outcome = None if self._interrupted else self._outcome(lost, problem)
            told = (*request.rungs_done, *self._ended, *([outcome] if outcome else []))
            known = {one.name: one for one in told}
        return Rescue(replace(request, rungs_done=tuple(known.values())), lost, outcome)

    def cause(self, problem: Problem) -> Problem:
        """Why the process died, if the job cannot go on: a rung that hung was ended by us."""
        with self._lock:
            is_hung = self._has_overrun and self._running is not None
            return self._hung(self._running.name, problem) if is_hung and self._running else problem

    def _outcome(self, name: str, problem: Problem) -> CaptureAttempt:
        if self._has_overrun:
            seconds = self._limit_s + self._grace_s
            return CaptureAttempt(
                name=name, status=AttemptStatus.TIMEOUT, seconds=seconds, error=self._hung(name, problem)
            )
        return CaptureAttempt(name=name, status=AttemptStatus.CRASHED, error=_crashed(name, problem))

    def _hung(self, name: str, problem: Problem) -> Problem:
        return Problem(
            code=ErrorCode.TIMEOUT,
            what=f"Capturing with {name} took longer than {self._limit_s:g} s and could not be interrupted",
            why="compiled code that it called did not return, so its process was ended",
            remedy=f"Look at the line; raise [capture] time_limit_s, or leave {name} out of [capture] rungs.",
            where=user_line(problem.details) or "[capture] time_limit_s",
            details=problem.details,
        )

    def _set_timer(self, limit_s: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if limit_s is not None:
            self._limit_s = limit_s
            self._timer = threading.Timer(limit_s + self._grace_s, self._on_overrun)
            self._timer.daemon = True
            self._timer.start()

    def _on_overrun(self) -> None:
        with self._lock:
            if self._timer is not threading.current_thread():
                return  # the rung ended just now
            self._has_overrun = True
        self._overrun()


def _is_repeatable(request: AnyRequest | None) -> TypeGuard[TraceRequest]:
    """A request of exactly these kinds climbs the ladder once; others that are built on them climb it often."""
    return type(request) in (TraceRequest, RunRequest, SensitivityRequest)


def _goes_on_after(rung: str, request: AnyRequest | None) -> bool:
    """Whether the ladder has another rung after this one."""
    return _is_repeatable(request) and rung in request.recipe.capture.rungs[:-1]


def _crashed(name: str, problem: Problem) -> Problem:
    memory = problem.code is ErrorCode.OUT_OF_MEMORY
    return Problem(
        code=problem.code if memory else ErrorCode.CRASH,
        what=f"Capturing with {name} ended the engine process: {_decapitalized(problem.what)}",
        why=problem.why,
        remedy=problem.remedy
        if memory
        else f"Look at the line and at the details, or leave {name} out of [capture] rungs.",
        where=user_line(problem.details),
        details=problem.details,
    )


def _decapitalized(text: str) -> str:
    return text[:1].lower() + text[1:]


def user_line(details: str) -> str:
    """``file:line`` of the innermost frame that is the user's, in the stack that a dying interpreter printed."""
    _, found_stack, stack = details.rpartition("Fatal Python error")
    frames = (_FRAME.match(line) for line in stack.splitlines() if found_stack)
    return next((f"{found[1]}:{found[2]}" for found in frames if found and not _NOT_THE_USERS.search(found[1])), "")
