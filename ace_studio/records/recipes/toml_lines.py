"""The line of each key of a TOML text. ``tomllib`` reads values but keeps no positions."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

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
_QUOTED = ((_LONG_BASIC, '"""'), (_LONG_LITERAL, "'''"), (_BASIC, '"'), (_LITERAL, "'"))


def key_lines(text: str) -> dict[KeyPath, int]:
    """The 1-based line of every key, table header and list item of a text that ``tomllib`` accepts.

    Of an invalid text only the lines of a prefix are found; nothing is raised.
    """
    scanner = _Scanner(text)
    try:
        scanner.scan_document()
    except (IndexError, RecursionError, tomllib.TOMLDecodeError):
        return scanner.lines
    return scanner.lines


class _Scanner:
    """Scans a valid document and records where keys start; values are skipped."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.lines: dict[KeyPath, int] = {}
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._list_lengths: dict[KeyPath, int] = {}

    def scan_document(self) -> None:
        table: KeyPath = ()
        self._skip(_BLANK)
        while self.position < len(self.text):
            if self.text[self.position] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)

    def _header(self) -> KeyPath:
        start = self.position
        opening = 2 if self.text.startswith("[[", start) else 1
        self.position += opening
        keys = self._key()
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
        return path

    def _pair(self, table: KeyPath) -> None:
        start = self.position
        path = table
        for key in self._key():
            path += (key,)
            self._note(path, start)
        self.position += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

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

    def _value(self, path: KeyPath) -> None:
        self._note(path, self.position)
        first = self.text[self.position]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            start = self.position
            self._skip(self._scalar_pattern())
            if self.position == start:
                raise IndexError("an empty value; an array of those would never end")

    def _scalar_pattern(self) -> re.Pattern[str]:
        for pattern, opening in _QUOTED:
            if self.text.startswith(opening, self.position):
                return pattern
        return _SCALAR

    def _array(self, path: KeyPath) -> None:
        self.position += 1
        index = 0
        while True:
            self._skip(_BLANK)
            if self.text[self.position] == "]":
                break
            if self.text[self.position] == ",":
                self.position += 1
                continue
            self._value((*path, index))
            index += 1
        self.position += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.position += 1
        while True:
            self._skip(_BLANK)
            if self.text[self.position] == "}":
                break
            if self.text[self.position] == ",":
                self.position += 1
                continue
            self._pair(path)
        self.position += 1

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.position)
        if found is None:
            raise IndexError("not what a valid document has here")
        self.position = found.end()

    def _note(self, path: KeyPath, position: int) -> None:
        self.lines.setdefault(path, bisect_right(self._line_starts, position))
