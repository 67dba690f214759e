"""Reads guards: the conditions on input sizes that a tracer attaches to a graph, as Python expressions."""

import ast
import functools
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

_Evaluate = Callable[[Mapping[str, int]], int]
"""Sizes by their names -> the value of an expression; a condition is 0 or 1."""
_ORDINARY_SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16)
_MOST_SIZES = 3
_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type[ast.AST], Callable[[int], int]] = {ast.USub: operator.neg, ast.Not: operator.not_}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "min": lambda *values: functools.reduce(torch.sym_min, values),
    "max": lambda *values: functools.reduce(torch.sym_max, values),
}


def excludes_only_one(guard: str) -> bool:
    """Whether a guard holds for ordinary sizes and fails only where some size is 1.

    ``x.size()[0] != 1``, ``x.size()[0] >= 2`` and ``(32*x.size()[1]) != 32`` do; ``x.size()[0] != 3`` does not. It is
    tried on many sizes, which is a good guess and no proof: whoever drops a guard must run the graph there.
    """
    try:
        names = sorted(set(_sizes(ast.parse(guard, mode="eval").body)))
        if not names or len(names) > _MOST_SIZES:
            return False
        condition = _function_of(guard)
        fails_at_one = any(
            not condition({**dict.fromkeys(names, 5), **dict.fromkeys(ones, 1)})
            for count in range(1, len(names) + 1)
            for ones in itertools.combinations(names, count)
        )
        return fails_at_one and all(
            condition(dict(zip(names, sizes, strict=True)))
            for sizes in itertools.product(_ORDINARY_SIZES, repeat=len(names))
        )
    except (SyntaxError, NotImplementedError, ZeroDivisionError):
        return False


def is_about_equality(guard: str) -> bool:
    """Whether a guard only asks whether sizes are equal: ``x.size()[2] // 64 != 1``, ``2*(h // 2) == h and a == b``."""
    try:
        tree = ast.parse(guard, mode="eval").body
    except SyntaxError:
        return False
    asked = [op for part in ast.walk(tree) if isinstance(part, ast.Compare) for op in part.ops]
    return bool(asked and _sizes(tree)) and all(isinstance(op, ast.Eq | ast.NotEq) for op in asked)


def fails_at(guard: str, shapes: Mapping[str, Sequence[int]]) -> bool:
    """Whether a guard fails at these shapes, by input name; False if it is about anything else."""
    sizes = {
        f"L['{path}].size()[{dim}]": size
        for at, (name, shape) in enumerate(shapes.items())
        for path in (f"{name}'", f"flat_args'][{at}")  # a strict export counts its inputs
        for dim, size in enumerate(shape)
    }
    try:
        return not holds(guard, sizes)
    except (NotImplementedError, KeyError, ZeroDivisionError):
        return False


def holds(condition: str, sizes: Mapping[str, int]) -> bool:
    """Whether a condition over named sizes holds. With symbolic sizes it becomes a condition of their graph.

    Raises: NotImplementedError for a condition that is not plain arithmetic.
    """
    return bool(_function_of(condition)(sizes))


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


@functools.lru_cache(maxsize=4096)
def _function_of(condition: str) -> _Evaluate:
    """The condition as a function of sizes. Cached, because the same one is evaluated at hundreds of sizes."""
    return _built(ast.parse(condition, mode="eval").body)


def _built(node: ast.AST) -> _Evaluate:
    """An arithmetic expression or a comparison as a function; NotImplementedError for anything else."""
    if _is_size(node):
        return operator.itemgetter(ast.unparse(node))
    build = _BUILDERS.get(type(node))
    found = build(node) if build is not None else None
    if found is None:
        raise NotImplementedError(ast.dump(node))
    return found


def _name(node: ast.Name) -> _Evaluate:
    def read(sizes: Mapping[str, int]) -> int:
        if node.id not in sizes:
            raise NotImplementedError(node.id)
        return sizes[node.id]

    return read


def _constant(node: ast.Constant) -> _Evaluate | None:
    value = node.value
    return (lambda _: value) if isinstance(value, int) else None


def _unary(node: ast.UnaryOp) -> _Evaluate | None:
    apply = _UNARY.get(type(node.op))
    operand = _built(node.operand)
    return (lambda sizes: apply(operand(sizes))) if apply is not None else None


def _two_sided(operation: ast.AST, left: ast.AST, right: ast.AST) -> _Evaluate | None:
    apply = _OPERATORS.get(type(operation))
    one, other = _built(left), _built(right)
    return (lambda sizes: apply(one(sizes), other(sizes))) if apply is not None else None


def _comparison(node: ast.Compare) -> _Evaluate | None:
    return _two_sided(node.ops[0], node.left, node.comparators[0]) if len(node.ops) == 1 else None


def _joined(node: ast.BoolOp) -> _Evaluate:
    parts = [_built(value) for value in node.values]
    join = all if isinstance(node.op, ast.And) else any
    return lambda sizes: join(part(sizes) for part in parts)


def _call(node: ast.Call) -> _Evaluate | None:
    apply = _FUNCTIONS.get(node.func.id) if isinstance(node.func, ast.Name) else None
    if apply is None:
        return None
    arguments = [_built(value) for value in node.args]
    return lambda sizes: apply(*(argument(sizes) for argument in arguments))


_BUILDERS: dict[type[ast.AST], Callable[[Any], _Evaluate | None]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.UnaryOp: _unary,
    ast.BinOp: lambda node: _two_sided(node.op, node.left, node.right),
    ast.Compare: _comparison,
    ast.BoolOp: _joined,
    ast.Call: _call,
}
