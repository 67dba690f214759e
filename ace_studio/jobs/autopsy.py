"""Turns what is known of a dead worker process into the problem that the user sees."""

import re
import signal
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from ace_studio.jobs.last_words import HEADLINE
from ace_studio.jobs.rescue import user_line
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.hosts import NEEDED
from ace_studio.records.system_faults import system_problem

MISSING_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '([\w.]+)'")
_ENDINGS = tomllib.loads(Path(__file__).with_name("endings.toml").read_text(encoding="utf-8"))["ending"]


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
    name = _signal_name(-death.exit_code) if death.exit_code < 0 else ""
    row = next(
        row
        for row in _ENDINGS
        if re.search(row.get("said", ""), said)
        and (re.search(row["signal"], name) if "signal" in row else not name or "said" in row)
        and row.get("is_oom_kill", death.was_oom_kill) == death.was_oom_kill
        and row.get("exit", death.exit_code) == death.exit_code
    )
    what = row["what"].format(said=said.partition("\n")[0], signal=name, exit=death.exit_code)
    code = ErrorCode(row.get("code", ErrorCode.CRASH))
    return _problem(death, code=code, what=what, why=row["why"], remedy=row["remedy"])


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


def _problem(death: Death, *, what: str, why: str, remedy: str, code: ErrorCode = ErrorCode.CRASH) -> Problem:
    details = "\n".join(death.tail)
    where = user_line(details)
    return Problem(code=code, what=what, why=why, remedy=remedy, where=where, details=details)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
