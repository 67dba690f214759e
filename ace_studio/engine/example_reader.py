"""Reading examples from a function of the user's: for tracing and for calibration alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping

from torch import Tensor

from ace_studio.engine.containers import register_containers
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode

_FORMS = "an example is a tuple (arguments), a dict (keyword arguments) or one tensor"


def read_examples(
    function: Callable[[], Iterable[object]], *, role: str, where: str, limit: int, remedy: str
) -> tuple[Example, ...]:
    """At most ``limit`` examples that a function of the user's gives; it may be a generator without end.

    Args:
        function: Called without arguments.
        role: ``tracing`` or ``calibration``: how messages call the function.
        where: The recipe's key that names it.
        limit: Nothing beyond this is asked for.
        remedy: What to do if there is no example.

    Raises: AceError(USER_CODE) if the function raises; AceError(BAD_INPUT) if what it returns is no list of examples;
        AceError(NO_DATA) if it gives none.
    """
    name = getattr(function, "__name__", role)
    try:
        values = list(itertools.islice(iter(_listed(function(), where)), limit))
    except AceError:  # it says the user's line already
        raise
    except Exception as error:
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"The {role} function {name}() raised {type(error).__name__}: {str(error)[:300]}",
            why="it is called without arguments and must return an iterable of examples",
            remedy=f"Correct it; {_FORMS}.",
            where=where,
        ) from error
    if not values:
        what = f"The {role} function {name}() gave no examples"
        raise AceError.of(ErrorCode.NO_DATA, what, remedy=remedy, where=where)
    return prepared(Example.of(value) for value in values)


def prepared(examples: Iterable[Example]) -> tuple[Example, ...]:
    """The examples, with the tensors inside of dataclasses and the like made visible to torch."""
    found = tuple(examples)
    register_containers([(one.args, dict(one.kwargs)) for one in found])
    return found


def _listed(value: object, where: str) -> Iterable[object]:
    """A tuple or a tensor is one example, not a list of them; every other iterable is the list."""
    if isinstance(value, Tensor | Mapping):
        return [value]
    if isinstance(value, tuple) and value and all(isinstance(part, Tensor) for part in value):
        return [value]
    if isinstance(value, Iterable):
        return value
    raise AceError.of(
        ErrorCode.BAD_INPUT,
        f"The examples are no list but {type(value).__name__}",
        remedy=f"Return a list of examples; {_FORMS}.",
        where=where,
    )
