"""Applying a unified diff of ours to the very text that it was made from."""

from __future__ import annotations

import re

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_LINE_END = re.compile(r"(?<=\n)")
NO_NEWLINE = "\\ No newline at end of file\n"


def apply_patch(text: str, patch: str) -> str:
    """The text with every hunk applied.

    Raises: ValueError if a hunk does not fit exactly: the text is another one by now.
    """
    lines = _lines(text)
    result: list[str] = []
    position = 0
    for start, removed, added in _hunks(patch):
        if lines[start : start + len(removed)] != removed or start < position:
            raise ValueError(f"line {start + 1} is not what the patch was made for")
        result += [*lines[position:start], *added]
        position = start + len(removed)
    return "".join([*result, *lines[position:]])


def _hunks(patch: str) -> list[tuple[int, list[str], list[str]]]:
    """Start (0-based), lines before and lines after, per hunk."""
    found: list[tuple[int, list[str], list[str]]] = []
    for line in _lines(patch):
        if match := _HUNK.match(line):
            start, count = int(match[1]), int(match[2] or 1)
            found.append((start - 1 if count else start, [], []))
        elif found and line == NO_NEWLINE:
            _strip_last(found[-1])
        elif found and line[0] in " -+":
            _, removed, added = found[-1]
            if line[0] in " -":
                removed.append(line[1:])
            if line[0] in " +":
                added.append(line[1:])
    return found


def _strip_last(hunk: tuple[int, list[str], list[str]]) -> None:
    """The line before this remark has no end. A context line is in both lists."""
    _, removed, added = hunk
    lists = [removed, added] if removed and added and removed[-1] == added[-1] else [added if added else removed]
    for one in lists:
        one[-1] = one[-1].removesuffix("\n")


def _lines(text: str) -> list[str]:
    return [line for line in _LINE_END.split(text) if line]
