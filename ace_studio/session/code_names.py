"""Functions and classes of the user's files, read from the syntax tree without running any code."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath


@dataclass(frozen=True, kw_only=True)
class CodeName:
    """One function, method or class."""

    qualified: str
    """``Net.pick`` for a method."""
    first_line: int
    """Of the ``def`` or ``class``, or of its first decorator."""
    last_line: int
    is_class: bool = False

    def control_name(self, path: str) -> str:
        """As a control of the capture names it: ``model:Net.pick`` for a method in ``model.py``."""
        return f"{PurePath(path.replace(chr(92), '/')).stem}:{self.qualified}"


@lru_cache(maxsize=32)
def names_in(text: str) -> tuple[CodeName, ...]:
    """All names of a file in order of their lines; functions inside functions cannot be reached and are left out.

    Empty for a text that is not Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(sorted(_below(tree.body, ""), key=lambda name: name.first_line))


def name_at(text: str, line: int) -> CodeName | None:
    """The innermost name around a line."""
    around = [name for name in names_in(text) if name.first_line <= line <= name.last_line]
    return max(around, key=lambda name: name.first_line, default=None)


def _below(body: Iterable[ast.stmt], prefix: str) -> Iterable[CodeName]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = min((node.lineno, *(one.lineno for one in node.decorator_list)))
            is_class = isinstance(node, ast.ClassDef)
            last = node.end_lineno or node.lineno
            yield CodeName(qualified=prefix + node.name, first_line=first, last_line=last, is_class=is_class)
            if is_class:
                yield from _below(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _below(node.body, prefix)
