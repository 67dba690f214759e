"""Reads the reason from an exception of a runtime, without the places in its C++ sources."""

import importlib
import importlib.metadata
import re
from functools import cache

import torch

from ace_studio.engine.quiet import hushed
from ace_studio.records.errors import AceError, ErrorCode

_PLACES = re.compile(
    r"^(Exception from .*"
    r"|Check '.*' failed( at .*)?"
    r"|.*[\\/][\w.-]+\.(cpp|cc|hpp|h):\d+.*:?"
    r"|.*Traceback \(most recent.*"
    r"|)$"
)
MAX_LENGTH = 300
MAX_DETAILS = 20_000
_OF_ONE_OP = re.compile(r"^-- (\S+) with a message:$")
"""First line of OpenVINO's message on each op that it could not translate."""


def library_reason(error: BaseException) -> str:
    """The part of the message about the model, or the exception's type if the message is empty.

    The first line that is no place in the library, with the next one if it ends in a colon; where OpenVINO lists ops
    that it could not translate, the reason for each op.
    """
    lines = [line.strip() for line in str(error).splitlines()]
    by_op = _reasons_of_ops(lines)
    if by_op:
        return "; ".join(f"{op}: {reason}" for op, reason in by_op.items())[:MAX_LENGTH]
    telling = [line for line in lines if not _PLACES.match(line)]
    if telling:
        return " ".join(telling[: 2 if telling[0].endswith(":") else 1])[:MAX_LENGTH]
    return next((line for line in lines if line), type(error).__name__)[:MAX_LENGTH]


def library_error(code: ErrorCode, what: str, error: BaseException, *, remedy: str = "", where: str = "") -> AceError:
    """The error of ours for an exception of a library, with its reason as why and its whole text as details."""
    return AceError.of(
        code, what, why=library_reason(error), remedy=remedy, where=where, details=str(error)[:MAX_DETAILS]
    )


@cache
def opening_problem(package: str, modules: tuple[str, ...]) -> str:
    """Why some modules of an installed package cannot be imported, which takes seconds; empty if they can."""
    try:
        with hushed():
            for name in modules:
                importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - border: a package built for another torch fails in any way
        release = f"{package.replace('_', '-')} {importlib.metadata.version(package)}"
        return f"{release} does not open beside torch {torch.__version__}: {library_reason(error)}"
    return ""


def _reasons_of_ops(lines: list[str]) -> dict[str, str]:
    """Op -> the last line of its message."""
    found: dict[str, str] = {}
    op = ""
    for line in lines:
        if begun := _OF_ONE_OP.match(line):
            op = begun[1]
        elif line.startswith("Summary:"):
            break
        elif op and not _PLACES.match(line):
            found[op] = line.rstrip(".")
    return found
