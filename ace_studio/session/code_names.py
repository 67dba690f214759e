"""Functions and classes of the user's files, and what ``forward`` takes, read without running any code."""

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
    return tuple(sorted(_below(_parsed(text).body, ""), key=lambda name: name.first_line))


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


def _parsed(text: str) -> ast.Module:
    """The syntax tree of a text; an empty one if it is not Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module(body=[], type_ignores=[])


@lru_cache(maxsize=8)
def forward_inputs(text: str, entry: str) -> tuple[str, ...]:
    """Names of the required arguments of ``forward``, in order.

    The class is the entry itself; if the entry is a function, the class that it calls, or the only class of the file
    that has a ``forward``. Empty if the class is ambiguous.
    """
    tree = _parsed(text)
    forwards = {
        node.name: forward
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for forward in node.body
        if isinstance(forward, ast.FunctionDef) and forward.name == "forward"
    }
    if entry in forwards:
        return _required(forwards[entry])
    made = _made_by(tree, entry) & set(forwards)
    named = made or set(forwards)
    return _required(forwards[named.pop()]) if len(named) == 1 else ()


def _made_by(tree: ast.Module, entry: str) -> set[str]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry]
    calls = (node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call))
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def _required(forward: ast.FunctionDef) -> tuple[str, ...]:
    """Arguments without a default, apart from the first, which is the module."""
    arguments = forward.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = positional[1 : len(positional) - len(arguments.defaults)]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return tuple(one.arg for one in (*needed, *(one for one, default in keywords if default is None)))
