"""Reading examples and labelled examples from the user's functions, for tracing, calibration, metrics and training."""

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor

from ace_studio.engine.examples.containers import register_containers
from ace_studio.engine.flow import Example, repeats_without_end
from ace_studio.records.errors import AceError, ErrorCode, message_of
from ace_studio.records.recipes.recipe import LimitsChoice

_FORMS = "an example is a tuple (arguments), a dict (keyword arguments) or one tensor"
PAIR_FORMS = "each is (inputs, labels); the inputs are a tensor, a tuple (arguments) or a dict (keyword arguments)"
"""How labelled data are written."""

MAX_EXAMPLES = 64
"""Sources of tracing examples may be endless; more than this tell nothing new."""


def read_examples(
    function: Callable[[], Iterable[object]], *, role: str, where: str, limit: int, remedy: str
) -> tuple[Example, ...]:
    """At most ``limit`` examples from a user's function, which may be an endless generator.

    Args:
        function: Called without arguments.
        role: ``tracing`` or ``calibration``: how messages call the function.
        where: The recipe's key that names it.
        limit: How many are read at most.
        remedy: What to do if there is no example.

    Raises: AceError(USER_CODE) if the function raises; AceError(BAD_INPUT) if what it returns is no list of examples;
        AceError(NO_DATA) if it gives none.
    """
    values = list(itertools.islice(values_given_by(function, role=role, where=where), limit))
    if not values:
        what = f"The {role} function {getattr(function, '__name__', role)}() gave no examples"
        raise AceError.of(ErrorCode.NO_DATA, what, remedy=remedy, where=where)
    return prepared(Example.of(value) for value in values)


def values_given_by(
    function: Callable[[], Iterable[object]], *, role: str, where: str, forms: str = _FORMS
) -> Iterator[object]:
    """The values of a user's function as they are, each read when it is used.

    Args:
        function: Called without arguments.
        role: How messages call the function.
        where: The recipe's key that names it.
        forms: What one value may be, for the remedy.

    Raises: AceError(USER_CODE) if the function raises, at any value; AceError(BAD_INPUT) if it returns no list.
    """
    name = getattr(function, "__name__", role)
    try:
        code = getattr(inspect.unwrap(function), "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else where
        yield from counted(_listed(function(), where, forms), f"The {role} function {name}()", place)
    except AceError:  # it says the user's line already
        raise
    except Exception as error:  # the user's code raises anything
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"The {role} function {name}() raised {type(error).__name__}: {message_of(error)}",
            why="it is called without arguments and must return an iterable",
            remedy=f"Correct it; {forms}.",
            where=where,
        ) from error


def split_pair(value: object) -> tuple[Example, Any] | None:
    """The inputs and the labels of a pair ``(inputs, labels)``; None if the value is not a pair."""
    parts = value.args if isinstance(value, Example) and not value.kwargs else value
    if not isinstance(parts, tuple | list) or len(parts) != 2:
        return None
    return Example.of(parts[0]), parts[1]


def prepared(examples: Iterable[Example]) -> tuple[Example, ...]:
    """The examples, with the tensors inside of dataclasses and the like made visible to torch.

    Raises: AceError(BAD_INPUT) if their nested lists have no end.
    """
    found = tuple(examples)
    if any(repeats_without_end((one.args, dict(one.kwargs))) for one in found):
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            "An example holds lists that contain themselves or each other, so that they have no end",
            why="each of their leaves is an input of the graph",
            remedy="Give each list members of its own.",
            where="[inputs]",
        )
    register_containers([(one.args, dict(one.kwargs)) for one in found])
    return found


_most_examples = LimitsChoice().examples
"""Of the running job; a process has one at a time."""


def limit_examples(most: int) -> None:
    """Set how many examples each source of the running job may give."""
    global _most_examples  # noqa: PLW0603 - data are read far below the recipe
    _most_examples = most


def counted(values: Iterable[object], what: str, where: str) -> Iterator[object]:
    """The values, as long as they are no more than `limit_examples` allows. Raises: AceError(BAD_INPUT)."""
    for count, value in enumerate(values, start=1):
        if count > _most_examples:
            raise AceError.of(
                ErrorCode.BAD_INPUT,
                f"{what} gave more than {_most_examples:,} examples",
                why="it may never end, and [limits] examples is that number",
                remedy="Let it give fewer, or raise [limits] examples.",
                where=where,
            )
        yield value


def _listed(value: object, where: str, forms: str) -> Iterable[object]:
    """The value as an iterable of examples: a tuple of tensors or a tensor is one example."""
    if isinstance(value, Tensor | Mapping):
        return [value]
    if isinstance(value, tuple) and value and all(isinstance(part, Tensor) for part in value):
        return [value]
    if isinstance(value, Iterable):
        return value
    raise AceError.of(
        ErrorCode.BAD_INPUT,
        f"The examples are no list but {type(value).__name__}",
        remedy=f"Return a list of examples; {forms}.",
        where=where,
    )
