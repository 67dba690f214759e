"""Turns what is known of a dead worker process into the problem that the user sees."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ace_studio.jobs.last_words import HEADLINE
from ace_studio.jobs.rescue import user_line
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.hosts import NEEDED
from ace_studio.records.system_faults import system_problem

MISSING_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '([\w.]+)'")
_SCRIPT_READER = re.compile(r"most recent call first\):\n  File \"[^\"]+torch.jit._serialization.py\"")


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
    _, _, said = "\n".join(death.tail).rpartition(HEADLINE)
    if said.startswith("os."):
        return _problem(
            death,
            code=ErrorCode.USER_CODE,
            what=f"The model's code ended the engine process with {said.partition(chr(10))[0]}",
            why="everything in that process was lost, the job with it",
            remedy="Raise an exception on that line instead; the details hold the calls that led to it",
        )
    if death.exit_code == -int(getattr(signal, "SIGKILL", 9)):
        return _killed(death)
    if death.exit_code < 0:
        name = _signal_name(-death.exit_code)
        if name == "SIGXCPU":
            return _problem(
                death,
                code=ErrorCode.TIMEOUT,
                what="The engine process used up the CPU time that this system allows it",
                why="The limit on CPU seconds (ulimit -t) ended it",
                remedy="Raise the limit (ulimit -t), or use fewer examples and targets",
            )
        if name in ("SIGTERM", "SIGALRM", "SIGHUP", "SIGINT"):
            return _problem(
                death,
                what=f"The engine process was ended by {name}",
                why="Code that it ran, or somebody else, sent that signal",
                remedy="Look for signal.alarm and the like in the model's code; the engine was started again",
            )
        if _SCRIPT_READER.search(said):
            return _problem(
                death,
                code=ErrorCode.BAD_FILE,
                what=f"torch crashed while it read the TorchScript file ({name})",
                why="the code in the file is nested too deep for torch's parser, or the file is damaged",
                remedy="Save the model again with less nesting, or open its Python source instead",
            )
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


def found_at(cause: Problem, death: Death) -> Problem:
    """A known cause, with the stack that the process printed when it was ended, and the user's line of it."""
    details = "\n".join(death.tail)
    if HEADLINE not in details or cause.details:
        return cause
    return replace(cause, details=details, where=user_line(details) or cause.where)


def cannot_start(interpreter: str, error: OSError | RuntimeError) -> Problem:
    """The problem of an interpreter that does not exist or cannot be executed, or of a machine that refuses."""
    if (fault := system_problem(error)) is not None:
        return replace(fault, what=f"{fault.what}: the engine process did not start")
    return Problem(
        code=ErrorCode.NOT_FOUND,
        what="The Python of the engine cannot be started",
        why=f"{interpreter}: {getattr(error, 'strerror', '') or error}",
        remedy="Choose another interpreter in the settings, or install an engine pack: ace-studio engine install FILE",
        where=interpreter,
    )


def _start_failure(death: Death) -> Problem:
    missing = [match[1] for line in death.tail if (match := MISSING_MODULE.search(line))]
    if missing:
        package = missing[-1].partition(".")[0]
        # One line for all that an engine needs: the next start would miss the next one. What is there stays as it is.
        wanted = " ".join(f"'{text}'" for text in NEEDED.values()) if package in NEEDED else package
        return _problem(
            death,
            code=ErrorCode.NOT_INSTALLED,
            what=f"The Python of the engine has no {package}",
            why=f"{death.interpreter} cannot import {missing[-1]}",
            remedy=f"Install what an engine needs there: {death.interpreter} -m pip install {wanted}; or choose "
            "another interpreter, or install an engine pack: ace-studio engine install FILE",
        )
    is_old = any(line.startswith("ACE Studio needs Python") for line in death.tail)
    last = next((line for line in reversed(death.tail) if line.strip()), "It printed nothing")
    if (fault := system_problem(RuntimeError("\n".join(death.tail)))) is not None:
        what = f"{fault.what}: the engine process did not start"
        return _problem(death, code=fault.code, what=what, why=last.strip(), remedy=fault.remedy)
    return _problem(
        death,
        code=ErrorCode.NOT_INSTALLED if is_old else ErrorCode.CRASH,
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
        why="Somebody sent SIGKILL: most often the system when memory runs out, else a person; the engine does it too "
        "when code of the model closes descriptors that are not its own",
        remedy="The engine was started again. If it happens again, watch the memory while the job runs",
    )


def _problem(death: Death, *, what: str, why: str, remedy: str, code: ErrorCode = ErrorCode.CRASH) -> Problem:
    details = "\n".join(death.tail)
    where = user_line(details)
    return Problem(code=code, what=what, why=why, remedy=remedy, where=where, details=details)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
