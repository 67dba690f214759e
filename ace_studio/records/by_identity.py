"""Results that are kept for the very same records: comparing two graphs of 50,000 ops takes as long as the work."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def kept_by_identity(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Keep the last four results of a function; its arguments are positional and compared with ``is``."""
    kept: list[tuple[tuple[Any, ...], Result]] = []

    @wraps(function)
    def find(*records: Arguments.args, **named: Arguments.kwargs) -> Result:
        for known, result in kept:
            if all(one is other for one, other in zip(known, records, strict=True)):
                return result
        result = function(*records, **named)
        kept.insert(0, (records, result))
        del kept[4:]
        return result

    return find
