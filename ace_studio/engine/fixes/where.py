"""Rewrites a branch on a tensor's value as ``torch.where``: both sides are computed, and one result is chosen."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ace_studio.engine.fixes.branches import Branch, CannotRewriteError, all_names, has_return, side_effect, torch_name
from ace_studio.engine.fixes.conditions import condition_text
from ace_studio.engine.fixes.source_text import Edit, SourceText, definitions, new_name, stored_names

Names = Mapping[str, str]
"""Name in the source -> name that holds its present value."""


_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


@dataclass(frozen=True)
class Returned:
    """The value that a side returns: one expression, or the items of a tuple, list or dictionary."""

    items: tuple[str, ...]
    keys: tuple[str, ...] = ()
    brackets: str = ""
    """Empty for a single value, else the brackets around the items; ``,`` for a tuple without brackets."""

    @property
    def text(self) -> str:
        """The expression."""
        if not self.brackets:
            return self.items[0]
        pairs = zip(self.keys, self.items, strict=True) if self.keys else ()
        inner = ", ".join([f"{key}: {item}" for key, item in pairs] or self.items)
        if self.brackets == ",":
            return inner if len(self.items) > 1 else f"{inner},"
        return f"{self.brackets[0]}{inner}{self.brackets[1]}"


@dataclass
class Side:
    """One side of a branch as lines without branches."""

    lines: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Variable that the side changes -> the name that holds its new value."""
    returned: Returned | None = None


def where_text(branch: Branch) -> str:
    """The whole file with the branch rewritten. Raises: CannotRewriteError with the reason."""
    if effect := side_effect(branch.sides()):
        raise CannotRewriteError(f"both sides would run at every call, and one of them must not: {effect}")
    return _Rewriter(branch).text()


class _Rewriter:
    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.source: SourceText = branch.source
        self.taken_names = all_names(branch.function)
        self.torch, self.edits = torch_name(branch.source)
        self.made = definitions(branch.function)

    def text(self) -> str:
        if self.branch.expression is not None:
            node = self.branch.expression
            edit = Edit(self.source.start_of(node), self.source.end_of(node), self._expression(node, {}))
            return self.source.edited([*self.edits, edit])
        statement = self.branch.statement
        assert statement is not None
        if any(has_return(one) for one in (*statement.body, *statement.orelse)):
            return self.source.edited([*self.edits, *self._returning(statement)])
        lines = self._assigning(statement, {}, {}).lines
        return self.source.edited([*self.edits, self._replaced(statement, statement, lines)])

    # --- the forms ---

    def _expression(self, node: ast.IfExp, names: Names) -> str:
        condition = condition_text(node.test, lambda one: self._expr(one, names), self.made)
        sides = [
            self._expression(one, names) if isinstance(one, ast.IfExp) else self._expr(one, names)
            for one in (node.body, node.orelse)
        ]
        if all(isinstance(one, ast.Tuple | ast.List | ast.Dict) for one in (node.body, node.orelse)):
            taken, other = self._returned(node.body, names), self._returned(node.orelse, names)
            return f"({self._merged(condition, taken, other).text})"
        return f"{self.torch}.where({condition}, {sides[0]}, {sides[1]})"

    def _assigning(self, statement: ast.If, names: Names, outer: Names) -> Side:
        """Compute both sides one after the other, then choose the value of every variable that either changes."""
        flag = new_name("is_taken", self.taken_names)
        side = Side([f"{flag} = {condition_text(statement.test, lambda one: self._expr(one, names), self.made)}"])
        taken = self._side(statement.body, names, "taken")
        other = self._side(statement.orelse, names, "other")
        side.lines += [*taken.lines, *other.lines]
        for name in dict.fromkeys((*taken.names, *other.names)):
            if not self._must_merge(name, statement, taken, other, names):
                continue
            pair = (taken.names.get(name, names.get(name, name)), other.names.get(name, names.get(name, name)))
            side.names[name] = new_name(f"{name}_chosen", self.taken_names) if outer or names else name
            side.lines.append(f"{side.names[name]} = {self.torch}.where({flag}, {pair[0]}, {pair[1]})")
        return side

    def _must_merge(self, name: str, statement: ast.If, taken: Side, other: Side, names: Names) -> bool:
        """Whether a variable has a value on both sides. Raises: CannotRewriteError if on one only, but read later."""
        if (name in taken.names and name in other.names) or name in names or self._is_set_before(name, statement):
            return True
        if self._is_read_after(name, statement):
            raise CannotRewriteError(f"'{name}' gets a value on one side only, and is read afterwards")
        return False

    def _is_set_before(self, name: str, statement: ast.If) -> bool:
        function = self.branch.function
        arguments = [one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)]
        before = [one for one in function.body if one.lineno < statement.lineno]
        stored = [
            node
            for top in before
            for node in ast.walk(top)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno < statement.lineno
        ]
        return name in arguments or any(node.id == name for node in stored)

    def _is_read_after(self, name: str, statement: ast.If) -> bool:
        end = statement.end_lineno or statement.lineno
        return any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and node.lineno > end
            for node in ast.walk(self.branch.function)
        )

    def _returning(self, statement: ast.If) -> list[Edit]:
        """Compute both sides up to their return, and return the choice."""
        rest = self.branch.rest
        body, orelse = list(statement.body), list(statement.orelse)
        ends_body, ends_other = (bool(part) and _ends(part[-1]) for part in (body, orelse))
        is_simple = (
            ends_body
            and not orelse
            and rest
            and isinstance(rest[-1], ast.Return)
            and not any(has_return(one) for one in rest[:-1])
        )
        if is_simple:
            return self._early_return(statement, rest[-1])
        side = self._returning_side(statement, rest, {}, ends=(ends_body, ends_other))
        assert side.returned is not None
        last = rest[-1] if rest and not (ends_body and ends_other) else statement
        return [self._replaced(statement, last, [*side.lines, f"return {side.returned.text}"])]

    def _early_return(self, statement: ast.If, last: ast.stmt) -> list[Edit]:
        """Keep the statements after the branch; only the final return changes."""
        assert isinstance(last, ast.Return)
        flag = new_name("is_taken", self.taken_names)
        condition = condition_text(statement.test, lambda one: self._expr(one, {}), self.made)
        taken = self._side(statement.body, {}, "taken")
        if taken.returned is None or last.value is None:
            raise CannotRewriteError("one side returns nothing")
        kept = Side()
        items = tuple(self._kept(item, kept) for item in taken.returned.items)
        returned = Returned(items, taken.returned.keys, taken.returned.brackets)
        merged = self._merged(flag, returned, self._returned(last.value, {}))
        lines = [f"{flag} = {condition}", *taken.lines, *kept.lines]
        value = Edit(self.source.start_of(last.value), self.source.end_of(last.value), merged.text)
        return [self._replaced(statement, statement, lines), value]

    def _kept(self, item: str, side: Side) -> str:
        """A name for a value that is computed before the statements after the branch."""
        if item.isidentifier() and item not in stored_names(self.branch.rest):
            return item
        name = new_name("taken", self.taken_names)
        side.lines.append(f"{name} = {item}")
        return name

    def _returning_side(
        self, statement: ast.If, rest: Sequence[ast.stmt], names: Names, *, ends: tuple[bool, bool]
    ) -> Side:
        if not any(ends):
            raise CannotRewriteError("a return stands deeper inside of one side")
        flag = new_name("is_taken", self.taken_names)
        side = Side([f"{flag} = {condition_text(statement.test, lambda one: self._expr(one, names), self.made)}"])
        taken = self._side([*statement.body, *([] if ends[0] else rest)], names, "taken")
        other = self._side([*statement.orelse, *([] if ends[1] else rest)], names, "other")
        if taken.returned is None or other.returned is None:
            raise CannotRewriteError("one side returns nothing, or goes on outside of the block that the branch is in")
        side.lines += [*taken.lines, *other.lines]
        side.returned = self._merged(flag, taken.returned, other.returned)
        return side

    # --- one side ---

    def _side(self, statements: Sequence[ast.stmt], names: Names, word: str) -> Side:
        side, now = Side(), dict(names)
        for index, statement in enumerate(statements):
            if isinstance(statement, ast.Return):
                if statement.value is None:
                    raise CannotRewriteError("one side returns nothing")
                side.returned = self._returned(statement.value, now)
                return side
            if isinstance(statement, ast.If):
                inner = self._inner(statement, statements[index + 1 :], now)
                side.lines += inner.lines
                if inner.returned is not None:
                    side.returned = inner.returned
                    return side
                changed = inner.names
            else:
                lines, changed = self._simple(statement, now, word)
                side.lines += lines
            now.update(changed)
            side.names.update(changed)
        return side

    def _inner(self, statement: ast.If, rest: Sequence[ast.stmt], names: Names) -> Side:
        if any(has_return(one) for one in (*statement.body, *statement.orelse)):
            ends = (_ends(statement.body[-1]), bool(statement.orelse) and _ends(statement.orelse[-1]))
            return self._returning_side(statement, rest, names, ends=ends)
        return self._assigning(statement, names, {"inside": ""})

    def _simple(self, statement: ast.stmt, names: Names, word: str) -> tuple[list[str], dict[str, str]]:
        """The lines of a statement with new names for its targets, and these names."""
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return [], {}
            case ast.Assign(targets=targets, value=value) if all(_is_names(one) for one in targets):
                changed = {name: new_name(f"{name}_{word}", self.taken_names) for name in stored_names(targets)}
                written = " = ".join(self._expr(one, changed, stores=True) for one in targets)
                return [f"{written} = {self._expr(value, names)}"], changed
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                changed = {name: new_name(f"{name}_{word}", self.taken_names)}
                return [f"{changed[name]} = {self._expr(value, names)}"], changed
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                changed = {name: new_name(f"{name}_{word}", self.taken_names)}
                old, new = names.get(name, name), self._expr(value, names)
                new = new if isinstance(value, _ATOMS) else f"({new})"
                return [f"{changed[name]} = {old} {_SIGNS[type(statement.op)]} {new}"], changed
            case _:
                kind = type(statement).__name__.lower()
                raise CannotRewriteError(f"one side holds a statement that is no plain assignment ({kind})")

    def _expr(self, node: ast.expr, names: Names, *, stores: bool = False) -> str:
        wanted = ast.Store if stores else ast.Load
        edits = []
        for one in ast.walk(node):
            if isinstance(one, ast.JoinedStr | ast.NamedExpr):
                raise CannotRewriteError("one side holds an f-string or an assignment inside an expression")
            if isinstance(one, ast.Name) and isinstance(one.ctx, wanted) and names.get(one.id, one.id) != one.id:
                edits.append(Edit(self.source.start_of(one), self.source.end_of(one), names[one.id]))
        text = self.source.segment(node, edits)
        before = self.source.text[: self.source.start_of(node)].rstrip(" \t")
        is_wrapped = "\n" in text and before.endswith("(")
        return f"({text})" if is_wrapped else text

    def _returned(self, value: ast.expr, names: Names) -> Returned:
        match value:
            case ast.Tuple(elts=items) | ast.List(elts=items) if items and not any(
                isinstance(one, ast.Starred) for one in items
            ):
                texts = tuple(self._item(one, names) for one in items)
                if isinstance(value, ast.List):
                    return Returned(texts, brackets="[]")
                return Returned(texts, brackets=",")
            case ast.Dict(keys=keys, values=items) if keys and all(isinstance(one, ast.Constant) for one in keys):
                named = tuple(self._expr(one, names) for one in keys if one is not None)
                return Returned(tuple(self._item(one, names) for one in items), keys=named, brackets="{}")
            case ast.Constant(value=None):
                raise CannotRewriteError("one side returns None")
            case _:
                return Returned((self._item(value, names),))

    def _item(self, node: ast.expr, names: Names) -> str:
        if isinstance(node, ast.Tuple | ast.List | ast.Dict):
            raise CannotRewriteError("a result is nested more than once, and torch.where takes one tensor at a time")
        return self._expression(node, names) if isinstance(node, ast.IfExp) else self._expr(node, names)

    def _merged(self, flag: str, taken: Returned, other: Returned) -> Returned:
        if (taken.brackets, taken.keys, len(taken.items)) != (other.brackets, other.keys, len(other.items)):
            raise CannotRewriteError("the two sides return differently nested results")
        pairs = zip(taken.items, other.items, strict=True)
        items = tuple(f"{self.torch}.where({flag}, {one}, {two})" for one, two in pairs)
        return Returned(items, taken.keys, taken.brackets)

    # --- text ---

    def _replaced(self, first: ast.stmt, last: ast.stmt, lines: Sequence[str]) -> Edit:
        """The edit that replaces statements by lines with the indentation of the first."""
        indent = self.source.indent(first.lineno)
        text = self.source.newline.join(indent + line for line in lines)
        if first is self.branch.statement and self.branch.is_elif:
            inner = self.source.newline.join(f"{indent}    {line}" for line in lines)
            text = f"{indent}else:{self.source.newline}{inner}"
        return Edit(self.source.start_of(first), self.source.end_of(last), text[len(indent) :])


def _ends(statement: ast.stmt) -> bool:
    """Whether no statement after this one is reached."""
    if isinstance(statement, ast.If):
        return bool(statement.orelse) and _ends(statement.body[-1]) and _ends(statement.orelse[-1])
    return isinstance(statement, ast.Return)


def _is_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(_is_names(one) for one in target.elts)
    return isinstance(target, ast.Name)
