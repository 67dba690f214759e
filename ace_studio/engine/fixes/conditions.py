"""Rewrites the test of a branch so that its value stays a tensor."""

import ast
from collections.abc import Callable, Mapping

Text = Callable[[ast.expr], str]
"""Returns the text of an expression in the source, with changed names replaced."""
_PLAIN_CALLS = frozenset({"bool", "float"})
_GIVE_TRUTH = frozenset({"any", "all", "is_nonzero", "logical_and", "logical_or", "logical_not", "eq", "gt", "lt"})
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def condition_text(test: ast.expr, text: Text, made: Mapping[str, ast.expr]) -> str:
    """The test as an expression whose value is a bool tensor; ``made`` maps names to what they were assigned.

    ``and``, ``or``, ``not``, chained comparisons, ``bool()`` and ``.item()`` turn a tensor into a Python value; they
    become operations on tensors. Whether the operands are tensors is found out when the change is tried.
    """
    match test:
        case ast.BoolOp(op=op, values=values):
            sign = " & " if isinstance(op, ast.And) else " | "
            # A flag of the module may be a plain truth value, which "&" takes as it is.
            plain = (ast.Name, ast.Attribute)
            return sign.join(
                f"({text(value) if isinstance(value, plain) else condition_text(value, text, made)})"
                for value in values
            )
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"~({condition_text(operand, text, made)})"
        case ast.Compare(left=left, ops=ops, comparators=others) if len(ops) > 1 and all(
            type(op) in _SIGNS for op in ops
        ):
            pairs = zip([left, *others], ops, others, strict=False)
            return " & ".join(
                f"({_tensor_text(one, text, made)} {_SIGNS[type(op)]} {_tensor_text(other, text, made)})"
                for one, op, other in pairs
            )
        case ast.Compare(left=left, ops=[op], comparators=[other]) if type(op) in _SIGNS:
            return f"{_tensor_text(left, text, made)} {_SIGNS[type(op)]} {_tensor_text(other, text, made)}"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="equal"), args=[one, other]):
            return f"({text(one)} == {text(other)}).all()"
        case ast.Call(func=ast.Name(id="bool"), args=[value], keywords=[]):
            return condition_text(value, text, made)
        case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[], keywords=[]):
            return condition_text(value, text, made)
        case ast.Call(func=ast.Attribute(attr=name)) if name in _GIVE_TRUTH:
            return text(test)
        case ast.Name(id=name) if name in made and _tensor_text(test, text, made) != text(test):
            return condition_text(made[name], text, {})
        case _:
            inner = text(test)
            return f"{inner}.bool()" if isinstance(test, _ATOMS) else f"({inner}).bool()"


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def _tensor_text(side: ast.expr, text: Text, made: Mapping[str, ast.expr]) -> str:
    """One side of a comparison without calls that turn a tensor into a number, also in the definition of a name."""
    match side:
        case ast.Name(id=name) if name in made:
            behind = _tensor_text(made[name], text, {})
            is_number = behind != text(made[name])
            return (behind if isinstance(made[name], _ATOMS) else f"({behind})") if is_number else text(side)
        case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[], keywords=[]):
            return text(value)
        case ast.Call(func=ast.Name(id=name), args=[value], keywords=[]) if name in _PLAIN_CALLS:
            return _tensor_text(value, text, made)
        case _:
            return text(side)
