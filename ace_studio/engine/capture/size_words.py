"""Conditions on sizes in words, such as ``a multiple of 4``, found by trying the sizes of one dimension."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ace_studio.engine.capture.guards import holds

_TRIED = 128
"""Sizes from 1 up that are tried."""
_LARGEST_DIVISOR = 64


def condition_in_words(condition: str, sizes: Mapping[str, int], *, size: str, name: str, shown: str) -> str:
    """What a condition demands of one size, while the other sizes stay as traced.

    Args:
        condition: The condition, as the graph has it.
        sizes: Every size in the condition, as written there -> the size that was traced.
        size: The size in question, as written there.
        name: The user's name of that size, such as ``x.2``.
        shown: The condition with the user's names, for a condition that has no better words.

    Returns: ``x.2 is a multiple of 4``; empty if every size will do; ``shown`` if no words were found.
    """
    known = {ast.unparse(ast.parse(one, mode="eval")): value for one, value in sizes.items()}
    asked = ast.unparse(ast.parse(size, mode="eval"))
    try:
        good = [value for value in range(1, _TRIED + 1) if holds(condition, {**known, asked: value})]
    except (NotImplementedError, ZeroDivisionError, SyntaxError):
        return shown
    if len(good) == _TRIED:
        return ""
    for divisor in range(2, _LARGEST_DIVISOR + 1):
        if good == list(range(divisor, _TRIED + 1, divisor)):
            return f"{name} is a multiple of {divisor}"
    if good and good == list(range(good[0], _TRIED + 1)):
        return f"{name} is at least {good[0]}"
    return shown
