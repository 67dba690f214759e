"""Where the keys, values and tables of a TOML text are. ``tomllib`` reads values but keeps no positions."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import NamedTuple

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the top of the document down to one value."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"'[^']*'")
_LONG_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(?:[^']|'(?!''))*'{3,5}", re.DOTALL)
_SCALAR = re.compile(r"[^,\]}\n#]*")
_MOST_PARTS = 100
"""Parts of the name of a table; a recipe has three."""
_QUOTED = ((_LONG_BASIC, '"""'), (_LONG_LITERAL, "'''"), (_BASIC, '"'), (_LITERAL, "'"))


class Span(NamedTuple):
    """Offsets of a ``key = value``, or of an item of an array, whose key and value start together."""

    start: int
    value: int
    end: int


class TableSpan(NamedTuple):
    """A table header and the pairs below it, up to the end of the last one."""

    start: int
    end: int


def key_lines(text: str) -> dict[KeyPath, int]:
    """The 1-based line of every key, table header and list item of a text that ``tomllib`` accepts.

    Of an invalid text only the lines of a prefix are found; nothing is raised.
    """
    return scan(text).lines


def scan(text: str) -> Scanner:
    """All positions in a text that ``tomllib`` accepts; of an invalid text only those of a prefix."""
    scanner = Scanner(text)
    with suppress(IndexError, RecursionError, tomllib.TOMLDecodeError):
        scanner.scan_document()
    return scanner


class Scanner:
    """Scans a valid document and records where keys, values and tables are; values are not read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.lines: dict[KeyPath, int] = {}
        self.spans: dict[KeyPath, Span] = {}
        """Of every value that stands after its key or in an array."""
        self.sections: dict[KeyPath, TableSpan] = {(): TableSpan(0, 0)}
        """Of every table with a header of its own; ``()`` is what stands before the first header."""
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._list_lengths: dict[KeyPath, int] = {}

    def scan_document(self) -> None:
        """Record everything. Raises: IndexError where the text is not valid."""
        table: KeyPath = ()
        self._skip(_BLANK)
        while self.position < len(self.text):
            if self.text[self.position] == "[":
                table = self._header()
            else:
                self._pair(table)
            self.sections[table] = TableSpan(self.sections[table].start, self.position)
            self._skip(_BLANK)

    def _header(self) -> KeyPath:
        start = self.position
        opening = 2 if self.text.startswith("[[", start) else 1
        self.position += opening
        keys = self._key()
        if len(keys) > _MOST_PARTS:
            raise IndexError(start)
        self.position += opening
        path: KeyPath = ()
        for depth, key in enumerate(keys):
            path += (key,)
            if opening == 2 and depth == len(keys) - 1:
                self._list_lengths[path] = self._list_lengths.get(path, 0) + 1
            self._note(path, start)
            if path in self._list_lengths:
                path += (self._list_lengths[path] - 1,)
        self._note(path, start)
        self.sections[path] = TableSpan(start, self.position)
        return path

    def _pair(self, table: KeyPath) -> None:
        start = self.position
        path = table
        for key in self._key():
            path += (key,)
            self._note(path, start)
        self.position += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path, start)

    def _key(self) -> list[str]:
        """Read ``a.b."c d"`` and stop at what follows it (an equals sign or a bracket)."""
        keys = []
        while True:
            self._skip(_SPACE)
            keys.append(self._one_key())
            self._skip(_SPACE)
            if self.text[self.position] != ".":
                return keys
            self.position += 1

    def _one_key(self) -> str:
        for pattern in (_BASIC, _LITERAL):
            if quoted := pattern.match(self.text, self.position):
                self.position = quoted.end()
                return str(tomllib.loads(f"key = {quoted[0]}")["key"])
        bare = _BARE_KEY.match(self.text, self.position)
        if bare is None:
            raise IndexError("not a key")
        self.position = bare.end()
        return bare[0]

    def _value(self, path: KeyPath, key_start: int) -> None:
        self._note(path, self.position)
        value_start = self.position
        first = self.text[self.position]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._items("}", lambda: self._pair(path))
        else:
            self._skip(self._scalar_pattern())
            self.position = value_start + len(self.text[value_start : self.position].rstrip())
            if self.position == value_start:
                raise IndexError("an empty value; an array of those would never end")
        self.spans[path] = Span(key_start, value_start, self.position)

    def _scalar_pattern(self) -> re.Pattern[str]:
        for pattern, opening in _QUOTED:
            if self.text.startswith(opening, self.position):
                return pattern
        return _SCALAR

    def _array(self, path: KeyPath) -> None:
        indices = count()
        self._items("]", lambda: self._value((*path, next(indices)), self.position))

    def _items(self, closing: str, read: Callable[[], None]) -> None:
        """Read what stands between commas, up to the closing bracket."""
        self.position += 1
        while True:
            self._skip(_BLANK)
            sign = self.text[self.position]
            if sign == closing:
                break
            if sign == ",":
                self.position += 1
            else:
                read()
        self.position += 1

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.position)
        if found is None:
            raise IndexError("not what a valid document has here")
        self.position = found.end()

    def _note(self, path: KeyPath, position: int) -> None:
        self.lines.setdefault(path, bisect_right(self._line_starts, position))
