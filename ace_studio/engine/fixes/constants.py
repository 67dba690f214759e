"""Rewrites a call that gives a plain number as a constant, if it gives the same number on every example."""

import ast
import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ace_studio.engine.fixes.branches import CannotRewriteError
from ace_studio.engine.fixes.source_text import Edit, SourceText, definitions, read_names, statements_at
from ace_studio.engine.fixes.spots import Spot

HOOK = "__ace_studio_note__"
"""Name of the function that records values, in the instrumented copy."""
_METHODS = frozenset({"item", "tolist", "numel", "size", "dim"})
_FUNCTIONS = frozenset({"int", "float", "bool", "round", "len", "max", "min", "sum"})
_PLAIN = (bool, int, float)
_LONGEST_LIST = 32


@dataclass(frozen=True)
class ValueCalls:
    """The calls of one line that give a plain number."""

    source: SourceText
    calls: tuple[ast.Call, ...]
    """In source order, none inside of another."""

    @property
    def words(self) -> str:
        """The calls as written in the source."""
        return ", ".join(f"`{' '.join(self.source.segment(call).split())}`" for call in self.calls)

    def instrumented(self) -> str:
        """The file with a hook around every call, which gets the call's number and value."""
        edits = []
        for number, call in enumerate(self.calls):
            start, end = self.source.start_of(call), self.source.end_of(call)
            edits += [Edit(start, start, f"{HOOK}({number}, "), Edit(end, end, ")")]
        return self.source.edited(edits)

    def with_constants(self, seen: Sequence[Sequence[Any]]) -> str:
        """The file with every call replaced by a constant; ``seen`` holds the recorded values of each.

        Raises: CannotRewriteError if a call was never reached, or its values differ.
        """
        edits = []
        for call, values in zip(self.calls, seen, strict=True):
            text = _constant(self.source.segment(call), values)
            edits.append(Edit(self.source.start_of(call), self.source.end_of(call), text))
        return self.source.edited(edits)


def value_calls(spot: Spot) -> ValueCalls | None:
    """The calls on the line that give plain numbers, else those that define names read on it; None without any."""
    if spot.source is None or spot.function is None:
        return None
    found = _numbers_of([call for call in spot.calls() if call.lineno == spot.line], spot)
    if not found:
        read = read_names(statements_at(spot.function, spot.line)[-1:])
        made = [
            value for name, value in definitions(spot.function).items() if name in read and value.lineno < spot.line
        ]
        found = _numbers_of([node for one in made for node in ast.walk(one) if isinstance(node, ast.Call)], spot)
    if not found:
        return None
    return ValueCalls(spot.source, tuple(sorted(found, key=lambda one: (one.lineno, one.col_offset))))


def _numbers_of(calls: Sequence[ast.Call], spot: Spot) -> list[ast.Call]:
    """Those that give numbers, the outermost of nested ones."""
    found: list[ast.Call] = []
    for call in calls:
        inside = any(call is node for one in found for node in ast.walk(one))
        if not inside and _gives_number(call, spot):
            found.append(call)
    return found


def _gives_number(call: ast.Call, spot: Spot) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in _METHODS:
        return spot.resolve(function.value) is None or not isinstance(spot.resolve(function.value), types.ModuleType)
    if isinstance(function, ast.Name) and function.id in _FUNCTIONS:
        return True
    target = spot.resolve(function)
    return getattr(target, "__module__", None) == math.__name__


def _constant(written: str, values: Sequence[Any]) -> str:
    shown = f"`{' '.join(written.split())}`"
    if not values:
        raise CannotRewriteError(f"{shown} was not reached on the examples")
    if not all(_is_plain(value) for value in values):
        raise CannotRewriteError(f"{shown} is no plain number, but {type(values[0]).__name__}")
    different = list(dict.fromkeys(map(repr, values)))
    if len(different) > 1:
        raise CannotRewriteError(f"{shown} is not the same on all examples: {', '.join(different[:5])}")
    if not all(math.isfinite(one) for one in _leaves(values[0])):
        raise CannotRewriteError(f"{shown} is {different[0]}, which has no way to be written")
    return different[0]


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) <= _LONGEST_LIST and all(_is_plain(one) for one in value)
    return isinstance(value, _PLAIN)


def _leaves(value: Any) -> list[Any]:
    return [leaf for one in value for leaf in _leaves(one)] if isinstance(value, list | tuple) else [value]


def noting(seen: list[list[Any]]) -> Callable[[int, Any], Any]:
    """Make the hook, which records a value under its number and returns it."""

    def note(number: int, value: Any) -> Any:
        seen[number].append(tuple(value) if type(value) is not list and isinstance(value, tuple) else value)
        return value

    return note
