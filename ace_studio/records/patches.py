"""Applying a unified diff of ours to the very text that it was made from."""

from __future__ import annotations

import re

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_LINE_END = re.compile(r"(?<=\n)")
NO_NEWLINE = "\\ No newline at end of file\n"


def apply_patch(text: str, patch: str) -> str:
    """The text with every hunk applied. Hunks may have moved, as they do after another patch of the same file.

    Raises: ValueError if the lines of a hunk are nowhere any more.
    """
    lines = _lines(text)
    result: list[str] = []
    position = 0
    for wanted, removed, added in _hunks(patch):
        start = _place(lines, removed, wanted, low=position)
        result += [*lines[position:start], *added]
        position = start + len(removed)
    return "".join([*result, *lines[position:]])


def _place(lines: list[str], removed: list[str], wanted: int, *, low: int) -> int:
    """Where the lines of a hunk are, the nearest to where they were."""
    places = sorted(range(low, len(lines) - len(removed) + 1), key=lambda start: abs(start - wanted))
    for start in places if removed else [max(wanted, low)]:
        if lines[start : start + len(removed)] == removed:
            return start
    raise ValueError(f"line {wanted + 1} is not what the patch was made for")


def _hunks(patch: str) -> list[tuple[int, list[str], list[str]]]:
    """Start (0-based), lines before and lines after, per hunk."""
    found: list[tuple[int, list[str], list[str]]] = []
    sign = ""
    for line in _lines(patch):
        if match := _HUNK.match(line):
            start, count = int(match[1]), int(match[2] or 1)
            found.append((start - 1 if count else start, [], []))
        elif found and line == NO_NEWLINE:
            for one in _sides(found[-1], sign):
                one[-1] = one[-1].removesuffix("\n")
        elif found:
            sign = line[0]
            for one in _sides(found[-1], sign):
                one.append(line[1:])
    return found


def _sides(hunk: tuple[int, list[str], list[str]], sign: str) -> list[list[str]]:
    """The lists that a line of a patch belongs to: ``-`` before, ``+`` after, a blank both."""
    _, before, after = hunk
    return [*([before] if sign in " -" else []), *([after] if sign in " +" else [])]


def _lines(text: str) -> list[str]:
    return [line for line in _LINE_END.split(text) if line]
