"""Reading the conditions that a tracer attaches to a graph, written as Python expressions over input sizes."""

from __future__ import annotations

import ast
import functools
import itertools
import operator
from collections.abc import Callable, Mapping

import torch

_ORDINARY_SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16)
_MOST_SIZES = 3
_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "min": lambda *values: functools.reduce(torch.sym_min, values),
    "max": lambda *values: functools.reduce(torch.sym_max, values),
}


def excludes_only_one(guard: str) -> bool:
    """Whether a condition holds for ordinary sizes and fails only where some size is 1.

    ``x.size()[0] != 1``, ``x.size()[0] >= 2`` and ``(32*x.size()[1]) != 32`` do; ``x.size()[0] != 3`` does not. It is
    tried on a grid of sizes, so this is a good guess and no proof: whoever drops a condition must run the graph there.
    """
    try:
        condition = ast.parse(guard, mode="eval").body
    except SyntaxError:
        return False
    names = sorted(set(_sizes(condition)))
    if not names or len(names) > _MOST_SIZES:
        return False
    try:
        fails_at_one = any(
            not _value(condition, {**dict.fromkeys(names, 5), **dict.fromkeys(ones, 1)})
            for count in range(1, len(names) + 1)
            for ones in itertools.combinations(names, count)
        )
        return fails_at_one and all(
            _value(condition, dict(zip(names, sizes, strict=True)))
            for sizes in itertools.product(_ORDINARY_SIZES, repeat=len(names))
        )
    except (NotImplementedError, ZeroDivisionError):
        return False


def holds(condition: str, sizes: Mapping[str, int]) -> bool:
    """Whether a condition over named sizes holds; asked of symbolic sizes, it becomes a condition of their graph.

    Raises: NotImplementedError for a condition that is no plain arithmetic.
    """
    return bool(_value(ast.parse(condition, mode="eval").body, sizes))


def _is_size(node: ast.AST) -> bool:
    """``L['x'].size()[0]``."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "size"
    )


def _sizes(node: ast.AST) -> list[str]:
    return [ast.unparse(part) for part in ast.walk(node) if _is_size(part)]


def _value(node: ast.AST, sizes: Mapping[str, int]) -> int:
    """The value of an arithmetic expression or a comparison; NotImplementedError for anything else."""
    if _is_size(node):
        return sizes[ast.unparse(node)]
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, sizes)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.BoolOp):
        values = (_value(value, sizes) for value in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand, sizes)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(_value(value, sizes) for value in node.args))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        return _OPERATORS[type(node.ops[0])](_value(node.left, sizes), _value(node.comparators[0], sizes))
    raise NotImplementedError(ast.dump(node))
