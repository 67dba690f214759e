"""Problems: what went wrong, why and what to do about it, and the exit code for scripts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
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
    """The user's own code raised, or ended the process."""
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
    SYSTEM = "system"
    """The machine refused: a disk that is full or read-only, or too many open files."""
    HOST = "host"
    """Another machine that cannot be reached, or that refused."""
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


TEXT_LIMIT = 4000
"""Characters of what, why, remedy and where; more comes only from a text of the user's, which may be endless."""
DETAILS_LIMIT = 20_000
"""Characters of the details."""


def message_of(error: BaseException, *, limit: int = 400) -> str:
    """What an exception says, on one line of at most ``limit`` characters; its own ``str()`` may raise."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the user's own class raises anything
        return "(its text cannot be read: str() of it raises)"
    text = " ".join(text[: 4 * limit].split())
    return text if len(text) <= limit else text[:limit] + " ..."


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it is Python's error, torch's for devices (by name: torch may be absent) or that of its CPU allocator."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or "DefaultCPUAllocator" in message_of(error)


_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Control bytes of terminals (C0 except tab and newline, C1), marks that reorder a line, and lone surrogates."""


def visible(text: str) -> str:
    r"""The text as it may be shown anywhere: what would steer a terminal or reorder a line becomes ``\u001b``.

    In a text of JSON these are escapes of JSON, and its values stay as they are.
    """
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: object) -> str:
    r"""`visible`, and in one line: for names, whose line ends (``\u000a`` here) could pass for words of the program."""
    return visible(str(text)).replace("\n", r"\u000a").replace("\t", r"\u0009")


def _plain_text(text: str, *, limit: int) -> str:
    """The text without its middle if it is too long, and `visible`."""
    if len(text) > limit:
        text = f"{text[: limit // 4]} ... {text[-(limit // 4 * 3 - 5) :]}"
    return visible(text)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem: what happened, why, what to do, and where.

    ``where`` is ``file:line`` (or ``file:line, module path``) when a place is known, else empty.
    ``details`` may hold a log or a traceback; it is shown on request, never by default. Texts are made fit to be sent
    and shown (`_plain_text`), because they quote what comes from outside; ``what`` and ``where`` are one line each.
    """

    code: ErrorCode
    what: str
    why: str = ""
    remedy: str = ""
    where: str = ""
    details: str = ""

    def __post_init__(self) -> None:
        for name in ("what", "why", "remedy", "where", "details"):
            text = getattr(self, name)
            plain = _plain_text(text, limit=DETAILS_LIMIT if name == "details" else TEXT_LIMIT)
            plain = one_line(plain) if name in ("what", "where") else plain
            if plain != text:
                msgspec.structs.force_setattr(self, name, plain)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that the command line ends with when this problem ends a job."""
        return _EXIT_CODES.get(self.code, ExitCode.JOB_FAILED)

    def as_text(self) -> str:
        """The problem as plain lines: what, then why, remedy and where; a line end in one of them is indented."""
        labelled = (("why", self.why), ("remedy", self.remedy), ("where", self.where))
        said = [self.what, *(f"  {label}: {text}" for label, text in labelled if text)]
        return "\n".join(one.replace("\n", "\n    ") for one in said)


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


@contextmanager
def explained(
    code: ErrorCode,
    what: str,
    *,
    remedy: str = "",
    where: object = "",
    of: type[Exception] | tuple[type[Exception], ...] = OSError,
) -> Iterator[None]:
    """Turn exceptions of the block into an `AceError`: ``what`` went wrong, and why in the exception's words."""
    try:
        yield
    except of as error:
        why = getattr(error, "strerror", None) or str(error)
        raise AceError.of(code, what, why=why, remedy=remedy, where=str(where)) from error
