"""Checks the texts in a stored graph that torch evaluates: they may hold arithmetic over sizes, and nothing else.

torch evaluates two kinds of text as Python when it reads a graph: expressions (``Mul(Integer(16), Symbol('s34'))``)
and conditions (``L['x'].size()[0] % 2 == 0``). Both are parsed to syntax trees first, and refused if they hold anything
else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import msgspec

_EXPRESSION_KEY = "expr_str"
_ARITHMETIC = (
    ast.Expression, ast.Call, ast.Name, ast.Constant, ast.Load, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare,
    ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip
_SYMBOLIC_NAME = re.compile(r"[A-Z][A-Za-z0-9]*|oo|zoo|nan|int_oo|true|false|[suzfi]\d+")
_SYMBOLIC_TEXT = re.compile(r"[\w.+-]{1,64}")
_CONDITION_NAMES = frozenset(
    {
        "L", "size", "stride", "storage_offset", "dim", "min", "max", "int", "float", "abs", "len", "math", "torch",
        "floor", "ceil", "trunc", "sqrt", "sym_max", "sym_min", "sym_float", "sym_int", "sym_not", "sym_ite",
        "_sym_sqrt",
    }
)  # fmt: skip


def check_expressions(graph: bytes, conditions: Sequence[str]) -> None:
    """Check a stored graph (JSON) and its conditions. Raises: ValueError with the first text that is refused."""
    for text in _expressions(graph):
        if not is_plain_expression(text):
            raise ValueError(f"not an expression over sizes: {text[:80]}")
    for text in conditions:
        if not is_plain_condition(text):
            raise ValueError(f"not a condition over sizes: {text[:80]}")


def is_plain_expression(text: str) -> bool:
    """Whether an expression consists of numbers, symbols and arithmetic."""
    for node in _nodes(text):
        if isinstance(node, ast.keyword):
            continue
        if not isinstance(node, _ARITHMETIC):
            return False
        if isinstance(node, ast.Name) and not _SYMBOLIC_NAME.fullmatch(node.id):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _SYMBOLIC_TEXT.fullmatch(node.value):
            return False
    return True


def is_plain_condition(text: str) -> bool:
    """Whether a condition only compares and computes with sizes of inputs."""
    for node in _nodes(text):
        if not isinstance(node, (*_ARITHMETIC, ast.Subscript, ast.Attribute, ast.IfExp)):
            return False
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else "L"
        if name not in _CONDITION_NAMES:
            return False
    return True


def _nodes(text: str) -> Iterator[ast.AST]:
    """The nodes of one expression; for anything else one node that is never allowed."""
    try:
        yield from ast.walk(ast.parse(text.strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield ast.Pass()


def _expressions(graph: bytes) -> Iterator[str]:
    """Every expression in the JSON of a graph, once."""
    pending, seen = [msgspec.json.decode(graph)], set()
    while pending:
        found = pending.pop()
        if isinstance(found, list):
            pending += found
        elif isinstance(found, dict):
            text = found.get(_EXPRESSION_KEY)
            if isinstance(text, str) and text not in seen:
                seen.add(text)
                yield text
            pending += found.values()
