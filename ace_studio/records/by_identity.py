"""Results that are kept for the very same records: comparing two graphs of 50,000 ops takes as long as the work."""

from collections.abc import Callable, Sequence
from functools import wraps
from operator import is_
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
_Found = TypeVar("_Found")


def are_same(first: Sequence[object], second: Sequence[object]) -> bool:
    """Whether two sequences hold the very same objects."""
    return len(first) == len(second) and all(map(is_, first, second))


def kept_by_identity(function: Callable[Arguments, _Found], *, count: int = 4) -> Callable[Arguments, _Found]:
    """Keep the last ``count`` results of a function; its arguments are positional and compared with ``is``."""
    kept: list[tuple[tuple[Any, ...], _Found]] = []

    @wraps(function)
    def find(*records: Arguments.args, **named: Arguments.kwargs) -> _Found:
        for known, result in kept:
            if are_same(known, records):
                return result
        result = function(*records, **named)
        kept.insert(0, (records, result))
        del kept[count:]
        return result

    return find
