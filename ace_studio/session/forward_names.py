"""The arguments of a model's ``forward``, read from the syntax tree of its file without running any code."""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(maxsize=8)
def forward_inputs(text: str, entry: str) -> tuple[str, ...]:
    """Names of the required arguments of ``forward``, in order.

    The class is the entry itself; if the entry is a function, the class that it calls, or the only class of the file
    that has a ``forward``. Empty if the class is ambiguous.

    Args:
        text: Content of the Python file.
        entry: Name of a class or function in it.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()
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
    """Names that a function calls."""
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
