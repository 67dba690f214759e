"""Files that a library refuses to open, each named for what it is."""

import contextlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import torch

from ace_studio.engine.load.sniff import bad_file, newer_format
from ace_studio.engine.load.user_errors import raised_by_user
from ace_studio.records.errors import AceError, message_of

_CAUSES = (
    (
        re.compile(
            r"maximum supported version|archive version \d+ does not match|schema.version|IR version|ValidateOpset",
            re.I,
        ),
        "was written in a newer format than {library} reads here",
        "update {library}, or export the model again with the release that is installed",
    ),
    (
        re.compile(r"No Op registered for|Unknown builtin op|no attribute|not registered", re.I),
        "has an operator that {library} does not know here",
        "import the library that defines the operator, or export the model with operators of {library} alone",
    ),
)


_CONTAINER = re.compile(r"file with version (\d+), but the maximum supported version for reading is (\d+)")


def newer_container(path: Path, reason: str) -> AceError | None:
    """The error for a torch file whose container has a version that this torch does not know; None if it has none."""
    found = _CONTAINER.search(reason)
    reads = f"torch {torch.__version__} reads up to version {found[2]}" if found else ""
    return newer_format(path, f"version {found[1]} of torch's file format", reads, "torch") if found else None


def refused_file(path: Path, reason: str, *, library: str, details: str = "") -> AceError:
    """The error for a file that a library does not open, with the library's reason."""
    for pattern, what, remedy in _CAUSES:
        if pattern.search(f"{reason} {details}"):
            return bad_file(
                path, what.format(library=library), why=reason, remedy=remedy.format(library=library), details=details
            )
    remedy = "it may be damaged: copy or download it again, or export the model again"
    return bad_file(path, f"is refused by {library}", why=reason, remedy=remedy, details=details)


class _Reasons(logging.Filter):
    """Keeps, instead of printing, the exceptions that a library logs before it raises another that says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        cause = record.exc_info[1] if record.exc_info else None
        while cause is not None and cause.__cause__ is not None:
            cause = cause.__cause__
        if cause is not None:
            self.said.append(f"{type(cause).__name__}: {message_of(cause)}")
        return cause is None


@contextlib.contextmanager
def opening(path: Path) -> Iterator[None]:
    """Turn what torch raises on a file into the file's error. What the user's own classes raise passes through."""
    reasons, logger = _Reasons(), logging.getLogger("torch.export")
    logger.addFilter(reasons)
    try:
        yield
    except AceError:
        raise
    except Exception as error:  # torch raises anything on a file that it cannot read
        if raised_by_user(error):
            raise
        reason = "; ".join([*reasons.said, message_of(error)])
        raise newer_container(path, reason) or refused_file(path, reason, library="torch") from error
    finally:
        logger.removeFilter(reasons)
