"""Finds a branch that depends on a tensor's value, and analyses it for both rewrites."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ace_studio.engine.fixes.source_text import Edit, Function, SourceText, read_names, statements_at, stored_names
from ace_studio.engine.fixes.spots import Spot

GUARDED = (ast.Div, ast.FloorDiv, ast.Mod)
_PARTIAL_FUNCTIONS = re.compile(r"^(log\w*|sqrt|rsqrt|reciprocal|div|divide|true_divide|inverse|inv|cholesky\w*|pow)$")
_CHANGES_IN_PLACE = re.compile(r"^(?!__)\w+[^_]_$")
_CONTAINER_CHANGES = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "update", "add", "setdefault"})


class CannotRewriteError(Exception):
    """A branch or call cannot be rewritten; the message tells the user why."""


@dataclass(frozen=True)
class Branch:
    """``if test: ... else: ...`` or ``a if test else b`` that depends on a tensor's value."""

    source: SourceText
    function: Function
    test: ast.expr
    statement: ast.If | None
    """None for the expression form."""
    expression: ast.IfExp | None
    block: list[ast.stmt]
    """The block of statements that holds the ``if``."""
    spot: Spot

    @property
    def rest(self) -> list[ast.stmt]:
        """The statements after the ``if`` in its block."""
        assert self.statement is not None
        return self.block[self.block.index(self.statement) + 1 :]

    @property
    def is_elif(self) -> bool:
        """Whether it is written as ``elif``."""
        assert self.statement is not None
        start = self.source.start_of(self.statement)
        return self.source.text.startswith("elif", start)

    def sides(self) -> list[ast.AST]:
        """Code that runs on one side only."""
        if self.expression is not None:
            return [self.expression.body, self.expression.orelse]
        assert self.statement is not None
        rest = self.rest if any(has_return(one) for one in (*self.statement.body, *self.statement.orelse)) else []
        return [*self.statement.body, *self.statement.orelse, *rest]


def branch_at(spot: Spot) -> Branch | None:
    """The branch whose test is on the line; None if there is none."""
    source, function = spot.source, spot.function
    if source is None or function is None:
        return None
    for statement in reversed(statements_at(function, spot.line)):
        if isinstance(statement, ast.If) and _covers(statement.test, spot.line):
            block = next(one for one in _blocks(function) if statement in one)
            return Branch(source, function, statement.test, statement, None, block, spot)
        for node in _expressions(statement):
            if isinstance(node, ast.IfExp) and _covers(node, spot.line):
                return Branch(source, function, node.test, None, node, [], spot)
    return None


def _covers(node: ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement outside of its nested statements."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _blocks(scope: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(scope):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def has_return(statement: ast.stmt) -> bool:
    """Whether the function may return inside the statement; nested functions do not count."""
    if isinstance(statement, ast.Return):
        return True
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return any(has_return(child) for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)) or any(
        has_return(child) for handler in getattr(statement, "handlers", []) for child in handler.body
    )


def torch_name(source: SourceText) -> tuple[str, list[Edit]]:
    """The file's name for torch, and the edit that imports torch if the file does not."""
    for node in source.tree.body:
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name == "torch" or (one.name.startswith("torch.") and not one.asname):
                    return one.asname or "torch", []
    last = 0
    for node in source.tree.body:
        is_head = isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last == 0
        )
        if not is_head:
            break
        last = node.end_lineno or node.lineno
    return "torch", [Edit(source.starts[last], source.starts[last], f"import torch{source.newline}")]


def locals_of(function: Function) -> set[str]:
    """The function's arguments and the names that it assigns."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {one.arg for one in named if one is not None} | set(stored_names(function.body))


def all_names(function: Function) -> set[str]:
    """Every name that the function uses, so that new ones do not collide."""
    return locals_of(function) | read_names([function])


def side_effect(nodes: list[ast.AST]) -> str:
    """The side effect of computing both sides, as text for the user; empty if none is found."""
    for top in nodes:
        for node in ast.walk(top):
            if text := _effect(node):
                return text
    return ""


def _effect(node: ast.AST) -> str:
    match node:
        case ast.Assign(targets=targets) if any(isinstance(one, ast.Attribute | ast.Subscript) for one in targets):
            return "it assigns to an attribute or an item"
        case ast.AugAssign(target=ast.Attribute() | ast.Subscript()):
            return "it changes an attribute or an item"
        case ast.Raise() | ast.Assert():
            return "it raises"
        case ast.Call(func=ast.Attribute(attr=name)) if _CHANGES_IN_PLACE.match(name) or name in _CONTAINER_CHANGES:
            return f"it calls {name}(), which changes its object in place"
        case ast.Call(func=ast.Name(id="print")):
            return "it prints"
        case ast.Break() | ast.Continue():
            return "it leaves a loop"
        case ast.Global() | ast.Nonlocal() | ast.Yield() | ast.YieldFrom() | ast.Await():
            return "it does more than compute"
    return ""


def guarded_operation(nodes: list[ast.AST]) -> str:
    """An operation that is undefined for some values, against which the branch may guard; empty if there is none."""
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.BinOp) and isinstance(node.op, GUARDED):
                return "a division"
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if _PARTIAL_FUNCTIONS.match(name):
                    return f"{name}()"
    return ""
