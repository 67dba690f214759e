"""Changed values written into a TOML text that a person wrote: every other line stays byte for byte."""

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from ace_studio.records.recipes.toml_lines import KeyPath, Span, TableSpan, scan
from ace_studio.records.recipes.toml_values import key_text, pair_text, value_text

_COMMA = re.compile(r"[ \t]*,?[ \t]*")
_REST_OF_LINE = re.compile(r"[ \t]*(#[^\n]*)?\r?(\n|$)")
_FIRST, _LATER = range(2)
"""Of what is inserted at one place: lines of a table go before other tables."""

Plain = Mapping[str, Any]
"""Text, numbers, lists and mappings, as `tomllib` reads them."""


def splice(text: str, *, old: Plain, new: Plain, written: Plain, keep_headers: bool = True) -> str:
    """The text with the values in which ``new`` differs from ``old``.

    Args:
        text: What ``old`` was read from.
        old: Every value of the document, those that are not written in the text too.
        new: As ``old``, after the change.
        written: What of ``new`` has to be written: the values that are no defaults.
        keep_headers: Whether a table whose values all go keeps its header and the comments below it.
    """
    splicer = _Splicer(text)
    have = tomllib.loads(text)
    for name in [name for name in new if old[name] != new[name]]:
        if name in have and name not in written and not keep_headers:
            splicer.remove((name,))
        elif name in have:
            splicer.change((name,), have[name], old[name], new[name], written.get(name, {}))
    changed = splicer.result()
    missing = [name for name in written if name not in tomllib.loads(changed)]
    if missing:
        splicer = _Splicer(changed)
        for name in missing:
            splicer.append_table(name, written[name])
    return splicer.result()


class _Splicer:
    """Collects replacements of parts of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.at = scan(text)
        self.edits: list[tuple[int, int, int, str]] = []
        self.at_the_end: list[str] = []
        self.below: dict[KeyPath, list[KeyPath]] = defaultdict(list)
        """Path -> every section and value at or below it."""
        for path in (*self.at.sections, *self.at.spans):
            for length in range(1, len(path) + 1):
                self.below[path[:length]].append(path)

    def result(self) -> str:
        """The text with all replacements."""
        parts, position = [], 0
        for start, _, end, new in sorted(self.edits, key=lambda edit: edit[:2]):
            parts += [self.text[position:start], new.replace("\n", self.newline)]
            position = max(position, end)
        changed = "".join((*parts, self.text[position:]))
        missing = "" if changed.endswith("\n") or not self.at_the_end else self.newline
        return changed + missing + "".join(self.at_the_end).replace("\n", self.newline)

    def change(self, path: KeyPath, have: Any, old: Any, new: Any, written: Any) -> None:
        """Replace a value by another; tables and lists change only where they differ."""
        span = self.at.spans.get(path)
        if _is_table(new) and _is_table(old) and span is None:
            self._table(path, have, old, new, written)
        elif (*path, 0) in self.at.sections:
            self._list(
                old, new,
                change=lambda i, j: self.change((*path, i), have[i], old[i], new[j], written[j]),
                remove=lambda i: self.remove((*path, i)),
                insert=lambda i, items: self._insert_tables(path, i, [written[j] for j in items]),
            )  # fmt: skip
        elif span is not None and self._is_one_per_line(path, old):
            self._list(
                old, new,
                change=lambda i, j: self.change((*path, i), have[i], old[i], new[j], written[j]),
                remove=lambda i: self._remove_item((*path, i)),
                insert=lambda i, items: self._insert_items(path, i, [written[j] for j in items]),
            )  # fmt: skip
        elif span is not None:
            self.edits.append((span.value, _LATER, span.end, value_text(written)))

    def remove(self, path: KeyPath) -> None:
        """Remove the lines of a key, or of a table with all below it."""
        places = [self.at.sections.get(one) or self.at.spans[one] for one in self.below[path]]
        done = -1
        for start, minus_end in sorted((place[0], -place[-1]) for place in places):
            if start > done:
                done = -minus_end
                self._remove_lines(start, done)

    def append_table(self, name: str, values: Plain) -> None:
        """A table at the end of the text: its values, then its lists of tables, then the tables in it."""
        lists = {key: value for key, value in values.items() if _is_list_of_tables(value)}
        plain = {key: value for key, value in values.items() if key not in lists}
        blocks = [[f"[{name}]", *_pairs(plain)]] if plain or not lists else []
        for key, items in lists.items():
            blocks += [[f"[[{name}.{key_text(key)}]]", *_pairs(item)] for item in items]
        self._append(blocks)

    def _table(self, path: KeyPath, have: Plain, old: Plain, new: Plain, written: Plain) -> None:
        for key in dict.fromkeys((*old, *new)):
            before, after = old.get(key), new.get(key)
            if before == after:
                continue
            if key not in have:
                self._insert(path, key, written[key])
            elif after in (None, "", [], {}) or (_is_table(after) and key not in written):
                self.remove((*path, key))
            else:
                self.change((*path, key), have[key], before, after, written.get(key, after))

    def _insert(self, path: KeyPath, key: str, value: Any) -> None:
        """A new key of a table, behind its last one."""
        if _is_list_of_tables(value) and path in self.at.sections:
            self._append([[f"[[{_dotted((*path, key))}]]", *_pairs(item)] for item in value])
            return
        if path in self.at.sections:
            self._insert_line(self.at.sections[path], pair_text(key, value))
            return
        dotted = [one for one in self.below[path] if one in self.at.spans and one[:-1] == path]
        if not dotted:
            self._append([[f"[{_dotted(path)}]", pair_text(key, value)]])
            return
        # Written as `goal.max_drop = 0.01` in the table around it.
        start, _, end = self.at.spans[dotted[-1]]
        depth = next(depth for depth in range(len(path), -1, -1) if path[:depth] in self.at.sections)
        self._insert_line(TableSpan(start, end), f"{_dotted(path[depth:])}.{pair_text(key, value)}")

    def _insert_line(self, behind: TableSpan, line: str) -> None:
        end = self._line_end(behind.end)
        start = self._line_start(behind.end)
        indent = self.text[start : start + len(self.text[start:end]) - len(self.text[start:end].lstrip(" \t"))]
        missing = "" if self.text[:end].endswith("\n") else "\n"
        self.edits.append((end, _FIRST, end, f"{missing}{indent}{line}\n"))

    def _list(
        self,
        old: Sequence[Any],
        new: Sequence[Any],
        *,
        change: Callable[[int, int], None],
        remove: Callable[[int], None],
        insert: Callable[[int, Sequence[int]], None],
    ) -> None:
        """Turn one list into another. ``insert`` gets the item before the new ones, -1 for none."""
        before, after = ([json.dumps(item, sort_keys=True) for item in items] for items in (old, new))
        steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        for tag, first, last, new_first, new_last in steps:
            if tag != "equal":
                common = min(last - first, new_last - new_first)
                for at in range(common):
                    change(first + at, new_first + at)
                for at in range(first + common, last):
                    remove(at)
                if new_last > new_first + common:
                    insert(last - 1, range(new_first + common, new_last))

    def _insert_tables(self, path: KeyPath, behind: int, items: Sequence[Plain]) -> None:
        blocks = ["\n".join((f"[[{_dotted(path)}]]", *_pairs(item), "")) for item in items]
        if behind < 0:
            start = self._line_start(self.at.sections[(*path, 0)].start)
            self.edits.append((start, _LATER, start, "".join(f"{block}\n" for block in blocks)))
            return
        ends = [self.at.sections[one].end for one in self.below[(*path, behind)] if one in self.at.sections]
        end = self._line_end(max(ends))
        missing = "" if self.text[:end].endswith("\n") else "\n"
        self.edits.append((end, _LATER, end, missing + "".join(f"\n{block}" for block in blocks)))

    def _append(self, blocks: Sequence[Sequence[str]]) -> None:
        self.at_the_end += ["\n" + "\n".join((*block, "")) for block in blocks]

    def _is_one_per_line(self, path: KeyPath, items: Any) -> bool:
        """Whether this is an array, each item begins a line, and the bracket at its end another."""
        if not isinstance(items, list) or not items:
            return False
        starts = [self.at.spans[(*path, at)].start for at in range(len(items))]
        return all(
            not self.text[self._line_start(start) : start].strip() for start in (*starts, self.at.spans[path].end - 1)
        )

    def _remove_item(self, path: KeyPath) -> None:
        span = self.at.spans[path]
        end = self._line_end(self._comma_end(span))
        self.edits.append((self._line_start(span.start), _LATER, end, ""))

    def _comma_end(self, item: Span) -> int:
        """Behind the comma that follows an item, or behind the blanks where there is none."""
        comma = _COMMA.match(self.text, item.end)
        return comma.end() if comma else item.end

    def _insert_items(self, path: KeyPath, behind: int, items: Sequence[Any]) -> None:
        near = self.at.spans[(*path, max(behind, 0))]
        indent = self.text[self._line_start(near.start) : near.start]
        lines = "".join(f"{indent}{value_text(item)},\n" for item in items)
        if behind < 0:
            start = self._line_start(near.start)
            self.edits.append((start, _LATER, start, lines))
            return
        comma = self._comma_end(near)
        if "," not in self.text[near.end : comma]:
            self.edits.append((near.end, _LATER, near.end, ","))
        end = self._line_end(comma)
        self.edits.append((end, _LATER, end, lines))

    def _remove_lines(self, start: int, end: int) -> None:
        start, end = self._line_start(start), self._line_end(end)
        is_between_blanks = self.text[:start].endswith(2 * self.newline) and (
            end == len(self.text) or self.text.startswith(self.newline, end)
        )
        if is_between_blanks:
            start -= len(self.newline)
        self.edits.append((start, _LATER, end, ""))

    def _line_start(self, position: int) -> int:
        return self.text.rfind("\n", 0, position) + 1

    def _line_end(self, position: int) -> int:
        """Behind the line break of the line, whatever comment it ends with."""
        rest = _REST_OF_LINE.match(self.text, position)
        return rest.end() if rest else position


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_list_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_table(item) for item in value)


def _dotted(path: KeyPath) -> str:
    return ".".join(key_text(str(part)) for part in path if not isinstance(part, int))


def _pairs(table: Plain) -> list[str]:
    return [pair_text(key, value) for key, value in table.items()]
