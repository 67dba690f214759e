"""A source file as text and as a syntax tree; edits keep all other blanks and comments."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ace_studio.records.patches import make_patch

Function = ast.FunctionDef | ast.AsyncFunctionDef
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Edit:
    """Characters ``start`` to ``end`` become ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class SourceText:
    """One Python file."""

    path: Path
    text: str
    tree: ast.Module
    starts: tuple[int, ...]
    """Offset at which every line begins."""

    @classmethod
    def read(cls, path: Path) -> SourceText | None:
        """Read a file; None if it is not Python in UTF-8."""
        try:
            return cls.parse(path, path.read_bytes().decode("utf-8"))
        except (OSError, ValueError, SyntaxError):
            return None

    @classmethod
    def parse(cls, path: Path, text: str) -> SourceText:
        """Parse the present or future text of a file. Raises: SyntaxError or ValueError if it is not Python."""
        tree = ast.parse(text)
        ends = [match.end() for match in _LINE_END.finditer(text)]  # splitlines knows more line ends than Python does
        tail = [len(text)] if not ends or ends[-1] < len(text) else []
        return cls(path, text, tree, (0, *ends, *tail))

    @property
    def newline(self) -> str:
        """The file's line end."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def line_text(self, line: int) -> str:
        """The line, without its end."""
        return self.text[self.starts[line - 1] : self.starts[line]].rstrip("\r\n")

    def indent(self, line: int) -> str:
        """The line's indentation."""
        text = self.line_text(line)
        return text[: len(text) - len(text.lstrip())]

    def start_of(self, node: ast.stmt | ast.expr) -> int:
        """Offset of the first character of a node."""
        return self._offset(node.lineno, node.col_offset)

    def end_of(self, node: ast.stmt | ast.expr) -> int:
        """Offset behind the last character of a node."""
        assert node.end_lineno is not None and node.end_col_offset is not None, "ast.parse sets both"
        return self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column_bytes: int) -> int:
        start = self.starts[line - 1]
        text = self.text[start : self.starts[line]] if line < len(self.starts) else ""
        return start + len(text.encode()[:column_bytes].decode())

    def segment(self, node: ast.stmt | ast.expr, edits: Iterable[Edit] = ()) -> str:
        """The text of a node, with those of the edits that lie inside it."""
        return self.extract(self.start_of(node), self.end_of(node), edits)

    def extract(self, start: int, end: int, edits: Iterable[Edit] = ()) -> str:
        """The text between two offsets, with those of the edits that lie between them."""
        inside = sorted((edit for edit in edits if start <= edit.start and edit.end <= end), key=lambda one: one.start)
        parts, position = [], start
        for edit in inside:
            parts += [self.text[position : edit.start], edit.text]
            position = edit.end
        return "".join([*parts, self.text[position:end]])

    def edited(self, edits: Sequence[Edit]) -> str:
        """The whole text after the edits, which must not overlap."""
        return self.extract(0, len(self.text), edits)

    def functions_at(self, line: int) -> list[Function | ast.ClassDef]:
        """The functions and classes around a line, outermost first."""
        return list(_around(self.tree, line))


def _around(node: ast.AST, line: int) -> Iterator[Function | ast.ClassDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and not child.lineno <= line <= (child.end_lineno or child.lineno):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
        yield from _around(child, line)


def statements_at(scope: ast.AST, line: int) -> list[ast.stmt]:
    """The statements around a line, outermost first."""
    inside = (node for node in ast.walk(scope) if isinstance(node, ast.stmt) and node is not scope)  # outer ones first
    return [node for node in inside if node.lineno <= line <= (node.end_lineno or node.lineno)]


def stored_names(nodes: Iterable[ast.AST]) -> list[str]:
    """Names that are assigned anywhere inside, in the order of their first assignment."""
    found = [
        (node.lineno, node.col_offset, node.id)
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
    ]
    return list(dict.fromkeys(name for _, _, name in sorted(found)))


def read_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that are read anywhere inside."""
    found = set()
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return found


def definitions(function: Function) -> dict[str, ast.expr]:
    """Names that the function assigns exactly once, by a plain assignment -> the assigned expression."""
    stored: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored[node.id] = stored.get(node.id, 0) + 1
    return {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and len(node.targets) == 1
        if isinstance(node.targets[0], ast.Name) and stored[node.targets[0].id] == 1
    }


def new_name(hint: str, taken: set[str]) -> str:
    """The name, with a number after it if it is taken; it is added to ``taken``."""
    name, number = hint, 1
    while name in taken:
        number += 1
        name = f"{hint}_{number}"
    taken.add(name)
    return name


def unified_diff(source: SourceText, changed: str, *, folder: Path) -> str:
    """The change as a patch for ``patch -p0`` or ``git apply -p0`` in ``folder`` (or beside a file outside of it)."""
    inside = source.path.is_relative_to(folder)
    name = os.path.relpath(source.path, folder).replace(os.sep, "/") if inside else source.path.name
    return make_patch(source.text, changed, name=name)
