"""Turns what is known of a dead worker process into the problem that the user sees."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from ace_studio.records.errors import ErrorCode, Problem

_MISSING_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '([\w.]+)'")


@dataclass(frozen=True, kw_only=True)
class Death:
    """The facts about a worker that died without being asked to."""

    exit_code: int
    """As `subprocess` gives it: negative for a signal's number."""
    was_ready: bool
    """Whether it had sent WorkerReady."""
    was_oom_kill: bool
    """Whether the system's out-of-memory killer struck during its life."""
    interpreter: str
    tail: Sequence[str] = ()
    """Last lines that it printed."""


def cause_of_death(death: Death) -> Problem:
    """The problem to show; the last lines of the log are in its details."""
    if not death.was_ready:
        return _start_failure(death)
    if death.exit_code == -int(getattr(signal, "SIGKILL", 9)):
        return _killed(death)
    if death.exit_code < 0:
        name = _signal_name(-death.exit_code)
        return _problem(
            death,
            what=f"The engine process crashed ({name})",
            why="Native code, of torch, a target or the model, failed in a way that Python cannot catch",
            remedy="The engine was started again. Try another target or other shapes; the details show the last lines",
        )
    return _problem(
        death,
        what=f"The engine process ended without an answer (exit code {death.exit_code})",
        why="Code that it ran ended the process" + (", which is no success" if death.exit_code == 0 else ""),
        remedy="Look for os._exit or abort in the model's code; the details hold the last lines printed",
    )


def cannot_start(interpreter: str, error: OSError) -> Problem:
    """The problem of an interpreter that does not exist or cannot be executed."""
    return Problem(
        code=ErrorCode.NOT_FOUND,
        what="The Python of the engine cannot be started",
        why=f"{interpreter}: {error.strerror or error}",
        remedy="Choose another interpreter in the settings",
        where=interpreter,
    )


def _start_failure(death: Death) -> Problem:
    missing = [match[1] for line in death.tail if (match := _MISSING_MODULE.search(line))]
    if missing:
        package = missing[-1].partition(".")[0]
        return _problem(
            death,
            code=ErrorCode.NOT_INSTALLED,
            what=f"The Python of the engine has no {package}",
            why=f"{death.interpreter} cannot import {missing[-1]}",
            remedy=f"Install it there: {death.interpreter} -m pip install {package}; or choose another interpreter",
        )
    last = next((line for line in reversed(death.tail) if line.strip()), "It printed nothing")
    return _problem(
        death,
        what="The engine process did not start",
        why=f"{last.strip()} (exit code {death.exit_code})",
        remedy="Check the interpreter in the settings; the details hold what it printed",
    )


def _killed(death: Death) -> Problem:
    if death.was_oom_kill:
        return _problem(
            death,
            code=ErrorCode.OUT_OF_MEMORY,
            what="The system ended the engine because memory ran out",
            why="The out-of-memory killer struck while the job ran",
            remedy="Use smaller or fewer examples, or a machine with more memory",
        )
    return _problem(
        death,
        what="The engine process was killed",
        why="Somebody sent SIGKILL: most often the system when memory runs out, else a person",
        remedy="The engine was started again. If it happens again, watch the memory while the job runs",
    )


def _problem(death: Death, *, what: str, why: str, remedy: str, code: ErrorCode = ErrorCode.CRASH) -> Problem:
    details = "\n".join(death.tail)
    return Problem(code=code, what=what, why=why, remedy=remedy, details=details)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
