"""A condition on sizes as a person says it: ``a multiple of 4``, found by trying the sizes of one dimension."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ace_studio.engine.capture.guards import holds

_TRIED = 128
"""Sizes from 1 up that are tried."""
_LARGEST_STEP = 64


def condition_in_words(condition: str, sizes: Mapping[str, int], *, size: str, name: str, shown: str) -> str:
    """What a condition asks of one size while the others are as they were traced.

    Args:
        condition: The condition, as the graph has it.
        sizes: Every size in it, as it is written there -> the size that was traced.
        size: The size that is asked about, as it is written there.
        name: How the user calls that size, such as ``x.2``.
        shown: The condition with the user's names, for what has no better words.

    Returns: ``x.2 is a multiple of 4``; empty if every size will do; ``shown`` if it ties the size to another one.
    """
    known = {ast.unparse(ast.parse(one, mode="eval")): value for one, value in sizes.items()}
    asked = ast.unparse(ast.parse(size, mode="eval"))
    try:
        good = [value for value in range(1, _TRIED + 1) if holds(condition, {**known, asked: value})]
    except (NotImplementedError, ZeroDivisionError, SyntaxError):
        return shown
    if len(good) == _TRIED:
        return ""
    for step in range(2, _LARGEST_STEP + 1):
        if good == list(range(step, _TRIED + 1, step)):
            return f"{name} is a multiple of {step}"
    if good and good == list(range(good[0], _TRIED + 1)):
        return f"{name} is at least {good[0]}"
    return shown
