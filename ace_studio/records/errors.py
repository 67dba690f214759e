"""Problems: what went wrong, why and what to do about it, and the exit code for scripts."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Self

import msgspec


class ExitCode(IntEnum):
    """Exit codes of the command line; a contract that scripts rely on."""

    DONE = 0
    USAGE = 2
    NOT_CAPTURED = 3
    GOAL_NOT_MET = 4
    NEEDS_TRUST = 5
    JOB_FAILED = 6
    CANCELLED = 130


class ErrorCode(StrEnum):
    """The kind of a problem; stable, so that scripts and tests can match on it."""

    USAGE = "usage"
    """A command, argument or option that is not valid."""
    RECIPE = "recipe"
    """A recipe file that cannot be read or contradicts itself."""
    NOT_FOUND = "not-found"
    """A file, folder, callable or column that is not there."""
    BAD_FILE = "bad-file"
    """A file whose content does not match its name or its use."""
    UNTRUSTED = "untrusted"
    """Opening this file would run its code, and the user has not trusted it."""
    USER_CODE = "user-code"
    """The user's own code raised."""
    BAD_INPUT = "bad-input"
    """Example inputs that the model cannot take."""
    NOT_CAPTURED = "not-captured"
    """No capture method gave a graph that matches eager."""
    WRONG_CAPTURE = "wrong-capture"
    """A graph was captured, but it does not compute what eager computes."""
    UNSUPPORTED = "unsupported"
    """The target cannot do this; `Problem.why` names the reason."""
    NOT_INSTALLED = "not-installed"
    """A package or a device that the request needs is missing."""
    NO_DATA = "no-data"
    """Calibration or evaluation was asked for without anything to do it with."""
    GOAL_NOT_MET = "goal-not-met"
    """Everything ran; nothing reached the goal."""
    CANCELLED = "cancelled"
    """The user cancelled the job."""
    OUT_OF_MEMORY = "out-of-memory"
    """The machine or the device ran out of memory."""
    TIMEOUT = "timeout"
    """A phase took longer than its limit."""
    CRASH = "crash"
    """The engine process died without an answer."""
    INTERNAL = "internal"
    """A bug in ACE Studio."""


_EXIT_CODES: dict[ErrorCode, ExitCode] = {
    ErrorCode.USAGE: ExitCode.USAGE,
    ErrorCode.RECIPE: ExitCode.USAGE,
    ErrorCode.NOT_FOUND: ExitCode.USAGE,
    ErrorCode.BAD_FILE: ExitCode.USAGE,
    ErrorCode.NO_DATA: ExitCode.USAGE,
    ErrorCode.UNTRUSTED: ExitCode.NEEDS_TRUST,
    ErrorCode.USER_CODE: ExitCode.NOT_CAPTURED,
    ErrorCode.BAD_INPUT: ExitCode.NOT_CAPTURED,
    ErrorCode.NOT_CAPTURED: ExitCode.NOT_CAPTURED,
    ErrorCode.WRONG_CAPTURE: ExitCode.NOT_CAPTURED,
    ErrorCode.GOAL_NOT_MET: ExitCode.GOAL_NOT_MET,
    ErrorCode.CANCELLED: ExitCode.CANCELLED,
}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem: what happened, why, what to do, and where.

    ``where`` is ``file:line`` (or ``file:line, module path``) when a place is known, else empty.
    ``details`` may hold a log or a traceback; it is shown on request, never by default.
    """

    code: ErrorCode
    what: str
    why: str = ""
    remedy: str = ""
    where: str = ""
    details: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that the command line ends with when this problem ends a job."""
        return _EXIT_CODES.get(self.code, ExitCode.JOB_FAILED)

    def as_text(self) -> str:
        """The problem as plain lines: what, then why, remedy and where, each on its own line."""
        labelled = (("why", self.why), ("remedy", self.remedy), ("where", self.where))
        return "\n".join([self.what, *(f"  {label}: {text}" for label, text in labelled if text)])


class AceError(Exception):
    """An exception that carries one or more `Problem` records; the first is the headline."""

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            raise ValueError("an AceError needs at least one problem")
        super().__init__(problems[0].as_text())
        self.problems = problems

    @property
    def problem(self) -> Problem:
        """The headline."""
        return self.problems[0]

    @classmethod
    def of(
        cls, code: ErrorCode, what: str, *, why: str = "", remedy: str = "", where: str = "", details: str = ""
    ) -> Self:
        """Build the error for a single problem."""
        return cls(Problem(code=code, what=what, why=why, remedy=remedy, where=where, details=details))
