"""Watches capture attempts and targets from the parent: how a job goes on when one of them kills the engine process.

An attempt runs in the worker, which reports when it begins and how long it may take. If the process dies during it, or
it hangs in native code that nothing can interrupt, the parent ends the process group, starts a new worker and sends the
request again with that attempt noted as failed: the next capture method runs in a fresh process. An attempt that was
interrupted inside the worker leaves that process in an unknown state, so the worker is replaced as well. A target
whose own code crashes is left out in the same way. Every repetition has one capture method or one target less, so they
come to an end. `ace_studio.engine.capture.attempts` is the worker's
side, and says why not every attempt has a process of its own.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

from msgspec.structs import replace

from ace_studio.jobs.last_words import HEADLINE
from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.records.targets import TARGET_ROWS

ATTEMPT_GRACE_S = 10.0
"""Seconds over its limit after which an attempt counts as hung: interrupting Python code takes up to a few."""
_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)')
_NOT_THE_USERS = re.compile(
    r"[\\/](torch|torchinductor_[^\\/]*|ace_studio|onnxruntime|openvino|nncf|numpy)[\\/]|[\\/]lib[\\/]python[\d.]+[\\/](?!site-packages|dist-packages)|^<"
)
"""``torchinductor_USER`` holds code that torch's compiler wrote."""


@dataclass(frozen=True)
class Rescue:
    """How a job goes on after its process died."""

    request: messages.TraceRequest
    lost: str
    """The capture method or the target that it goes on without."""
    outcome: CaptureAttempt | None
    """How that attempt ended; None for a target, or if the worker has reported it."""


class AttemptWatch:
    """The running capture attempt of a worker's job, its time limit, and the attempts before it."""

    def __init__(self, *, grace_s: float, overrun: Callable[[], None]) -> None:
        """``overrun`` is called, in another thread, when an attempt is over its limit by ``grace_s``."""
        self._grace_s = grace_s
        self._overrun = overrun
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._running: messages.AttemptStarted | None = None
        self._limit_s = 0.0
        self._has_overrun = False
        self._interrupted = ""
        self._ended: list[CaptureAttempt] = []
        self._target = ""

    @property
    def must_replace(self) -> bool:
        """Whether an attempt was interrupted in this process, so that its state is unknown and its events are void."""
        return bool(self._interrupted)

    def observe(self, event: messages.AnyEvent, request: messages.AnyRequest | None) -> bool:
        """Take note of an event of the running job; return whether the process must be replaced."""
        with self._lock:
            match event:
                case messages.TargetAtWork(target=target):
                    self._target = target
                case messages.AttemptStarted(limit_s=limit_s):
                    self._running = event
                    self._set_timer(limit_s)
                case messages.AttemptEnded(outcome=outcome):
                    self._running = None
                    self._ended = [attempt for attempt in self._ended if attempt.name != outcome.name] + [outcome]
                    self._set_timer(None)
                    if outcome.status is AttemptStatus.TIMEOUT and _has_next(outcome.name, request):
                        self._interrupted = outcome.name
            return bool(self._interrupted)

    def reset(self) -> None:
        """Forget the attempts, because the job or the process has ended."""
        with self._lock:
            self._running = None
            self._target = ""
            self._ended.clear()
            self._set_timer(None)

    def rescue(self, request: messages.AnyRequest, problem: Problem) -> Rescue | None:
        """How the request goes on after the process died with ``problem``; None if it does not.

        An attempt of its capture was running, or a target crashed. Without a stack, or with a line of the user's on it,
        that was not the target.
        """
        with self._lock:
            if self._target and isinstance(request, messages.RunRequest) and _is_native(problem):
                crashed = {self._target: _crashed_at(self._target, problem)}
                return Rescue(replace(request, targets_lost=request.targets_lost | crashed), self._target, None)
            lost = self._interrupted or (self._running.name if self._running else "")
            if not lost or not _is_repeatable(request):
                return None
            outcome = None if self._interrupted else self._outcome(lost, problem)
            attempts = (*request.rungs_done, *self._ended, *([outcome] if outcome else []))
            latest = {attempt.name: attempt for attempt in attempts}
        return Rescue(replace(request, rungs_done=tuple(latest.values())), lost, outcome)

    def cause(self, problem: Problem) -> Problem:
        """Why the process died, if the job cannot go on: an attempt that hung was ended by the parent."""
        with self._lock:
            return self._hung(self._running.name, problem) if self._has_overrun and self._running else problem

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
                return  # the attempt ended just now
            self._has_overrun = True
        self._overrun()


def _is_repeatable(request: messages.AnyRequest | None) -> TypeGuard[messages.TraceRequest]:
    """Whether a request captures once; requests of derived kinds capture often."""
    return type(request) in (messages.TraceRequest, messages.RunRequest, messages.SensitivityRequest)


def _has_next(method: str, request: messages.AnyRequest | None) -> bool:
    """Whether another capture method follows this one."""
    return _is_repeatable(request) and method in request.recipe.capture.rungs[:-1]


def _is_native(problem: Problem) -> bool:
    has_stack = HEADLINE in problem.details and not user_line(problem.details)
    return problem.code is ErrorCode.CRASH and has_stack


def _crashed_at(target: str, problem: Problem) -> Problem:
    label = TARGET_ROWS[target].label if target in TARGET_ROWS else target
    return Problem(
        code=ErrorCode.CRASH,
        what=f"{label} ended the engine process: {problem.what[:1].lower()}{problem.what[1:]}",
        why="its native code failed on this model; nothing of the model's own code was running",
        remedy="Take another target, or another precision; the details show where it was",
        details=problem.details,
    )


def _crashed(name: str, problem: Problem) -> Problem:
    is_memory = problem.code is ErrorCode.OUT_OF_MEMORY
    remedy = f"Look at the line and at the details, or leave {name} out of [capture] rungs."
    return Problem(
        code=problem.code if is_memory else ErrorCode.CRASH,
        what=f"Capturing with {name} ended the engine process: {problem.what[:1].lower()}{problem.what[1:]}",
        why=problem.why,
        remedy=problem.remedy if is_memory else remedy,
        where=user_line(problem.details),
        details=problem.details,
    )


def user_line(details: str) -> str:
    """``file:line`` of the user's innermost frame in the stack that a dying interpreter printed; empty without one.

    Of several threads only the one that failed counts.
    """
    _, has_stack, stack = details.rpartition(HEADLINE.strip())
    stack = stack.rpartition("Current thread")[2].partition("\nThread 0x")[0]
    frames = (_FRAME.match(line) for line in stack.splitlines() if has_stack)
    return next((f"{frame[1]}:{frame[2]}" for frame in frames if frame and not _NOT_THE_USERS.search(frame[1])), "")
