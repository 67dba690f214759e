"""What a runtime's own exception says, without the places in its C++ sources."""

from __future__ import annotations

import re

_PLACES = re.compile(
    r"^(Exception from .*"
    r"|Check '.*' failed( at .*)?"
    r"|.*[\\/][\w.-]+\.(cpp|cc|hpp|h):\d+.*:?"
    r"|.*Traceback \(most recent.*"
    r"|)$"
)
MAX_LENGTH = 300


def library_reason(error: BaseException) -> str:
    """The first line of the message that speaks of the model; the exception's type if there is none."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if not _PLACES.match(line)]
    if telling:
        return telling[0][:MAX_LENGTH]
    return next((line for line in lines if line), type(error).__name__)[:MAX_LENGTH]
