"""Unified diffs: make, combine and apply them."""

import difflib
import re
from collections.abc import Iterable

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_LINE_END = re.compile(r"(?<=\n)")
NO_NEWLINE = "\\ No newline at end of file\n"
MOST_FUZZ = 3
"""Context lines of a hunk that may differ; a diff has three."""


def make_patch(before: str, after: str, *, name: str) -> str:
    """The unified diff of two texts, for ``patch -p0`` and ``git apply -p0`` on a file called ``name``."""
    lines = difflib.unified_diff(_lines(before), _lines(after), fromfile=name, tofile=name)
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}" for line in lines)


def together(text: str, patches: Iterable[str]) -> str:
    """Combine several patches of one text into one patch.

    Raises: ValueError if they change the same lines.
    """
    changed, name = text, ""
    for patch in patches:
        name = name or patch.partition("\n")[0].removeprefix("--- ")
        changed = apply_patch(changed, patch)
    return make_patch(text, changed, name=name)


def apply_patch(text: str, patch: str) -> str:
    """Apply every hunk to a text. Hunks may have moved, and their context lines may differ.

    Raises: ValueError if the lines that a hunk changes are not found.
    """
    lines = _lines(text)
    result: list[str] = []
    position = 0
    for expected, removed, added in _hunks(patch):
        start, cut_removed, cut_added = _place(lines, removed, added, expected, low=position)
        result += [*lines[position:start], *cut_added]
        position = start + len(cut_removed)
    return "".join([*result, *lines[position:]])


def _place(
    lines: list[str], removed: list[str], added: list[str], expected: int, *, low: int
) -> tuple[int, list[str], list[str]]:
    """Find the nearest place where a hunk fits; returns the place and the hunk without context that does not fit."""
    for fuzz in range(MOST_FUZZ + 1):
        head, tail = _context(removed, added, fuzz), _context(removed[::-1], added[::-1], fuzz)
        one, other = removed[head : len(removed) - tail], added[head : len(added) - tail]
        if not one and removed:
            break  # no line would be left to find the place by
        places = sorted(range(low, len(lines) - len(one) + 1), key=lambda at: abs(at - expected))
        for start in places if one else [max(expected, low)]:
            if lines[start : start + len(one)] == one:
                return start, one, other
    raise ValueError(f"line {expected + 1} is not what the patch was made for")


def _context(removed: list[str], added: list[str], most: int) -> int:
    """How many lines at the beginning are the same in both, up to ``most``."""
    count = 0
    while count < min(most, len(removed), len(added)) and removed[count] == added[count]:
        count += 1
    return count


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
