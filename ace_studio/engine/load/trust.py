"""Requires trust before code of a file runs; trust belongs to the SHA-256 of its content."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ace_studio.records.errors import AceError, Problem
from ace_studio.records.untrusted import untrusted_problem


@dataclass(frozen=True)
class CodeToRun:
    """A file whose code is about to run."""

    path: Path
    sha256: str
    would_run: tuple[str, ...]


def require_trust(files: Iterable[CodeToRun], is_trusted: Callable[[str], bool]) -> None:
    """Return if every file is trusted.

    Raises: AceError(UNTRUSTED) with one problem per file that is not; its details hold ``sha256:HASH``.
    """
    problems = [_problem(file) for file in files if not is_trusted(file.sha256)]
    if problems:
        raise AceError(*problems)


def _problem(file: CodeToRun) -> Problem:
    return untrusted_problem(file.path, file.sha256, "; ".join(file.would_run))
