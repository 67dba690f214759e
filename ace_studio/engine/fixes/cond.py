"""Rewrites a branch on a tensor's value as ``torch.cond``: the sides become functions, of which one runs."""

import ast
from collections.abc import Sequence
from dataclasses import replace

from ace_studio.engine.fixes import branches
from ace_studio.engine.fixes.conditions import condition_text
from ace_studio.engine.fixes.source_text import Edit, SourceText, definitions, new_name, read_names, stored_names


def cond_text(branch: branches.Branch) -> str:
    """The whole file with the branch rewritten. Raises: CannotRewriteError with the reason."""
    if effect := branches.side_effect(branch.sides()):
        raise branches.CannotRewriteError(
            f"the sides of torch.cond may only compute, and one of these does more: {effect}"
        )
    return _Rewriter(_flattened(branch)).text()


def _flattened(branch: branches.Branch) -> branches.Branch:
    """Rewrite nested branches first: a function cannot begin with ``elif``, nor return for another function."""
    while (inner := _below(branch)) is not None:
        text = _Rewriter(_flattened(inner)).text()
        changed = branches.branch_at(replace(branch.spot, source=SourceText.parse(branch.source.path, text)))
        if changed is None or changed.statement is None:
            raise branches.CannotRewriteError("its sides are nested in a way that cannot be taken apart")
        branch = changed
    return branch


def _below(branch: branches.Branch) -> branches.Branch | None:
    """An ``elif`` of the branch, or the last branch after it that returns."""
    statement = branch.statement
    if statement is None:
        return None
    block = statement.orelse
    if len(block) == 1 and isinstance(inner := block[0], ast.If):
        below = replace(branch, test=inner.test, statement=inner, block=block)
        if below.is_elif:
            return below
    for inner in reversed(branch.rest) if branches.has_return(statement) else ():
        if isinstance(inner, ast.If) and branches.has_return(inner):
            return replace(branch, test=inner.test, statement=inner)
    return None


class _Rewriter:
    def __init__(self, branch: branches.Branch) -> None:
        self.branch = branch
        self.source: SourceText = branch.source
        self.names = branches.all_names(branch.function)
        self.torch, self.edits = branches.torch_name(branch.source)
        if any(isinstance(node, ast.NamedExpr) for node in ast.walk(branch.test)):
            raise branches.CannotRewriteError("its test assigns a variable")
        self.condition = condition_text(branch.test, self.source.segment, definitions(branch.function))

    def text(self) -> str:
        if self.branch.expression is not None:
            node = self.branch.expression
            sides = [_cloned(one, self.source.segment(one)) for one in (node.body, node.orelse)]
            written = f"{self.torch}.cond({self.condition}, lambda: {sides[0]}, lambda: {sides[1]})"
            edit = Edit(self.source.start_of(node), self.source.end_of(node), written)
            return self.source.edited([*self.edits, edit])
        statement = self.branch.statement
        assert statement is not None
        if any(branches.has_return(one) for one in (*statement.body, *statement.orelse)):
            return self.source.edited([*self.edits, self._returning(statement)])
        return self.source.edited([*self.edits, self._assigning(statement)])

    def _returning(self, statement: ast.If) -> Edit:
        """Replace a branch that returns; the second function also holds the statements after the branch."""
        rest = self.branch.rest
        if not _ends(statement.body) or not _ends(rest if rest else statement.orelse):
            raise branches.CannotRewriteError(
                "one side returns, and the other goes on outside of the block that the branch is in"
            )
        if rest and statement.orelse:
            raise branches.CannotRewriteError("one side returns, and both have code of their own before it")
        other = rest or statement.orelse
        operands = self._operands([statement.body, other])
        taken = self._function("taken_side", operands, self._block(statement.body))
        second = self._function("other_side", operands, self._block(other))
        lines = [*taken[1], "", *second[1], "", f"return {self._call(taken[0], second[0], operands)}"]
        return self._replaced(statement, rest[-1] if rest else statement, lines)

    def _assigning(self, statement: ast.If) -> Edit:
        """Replace a branch that assigns; each function returns the variables that either side changes."""
        sides = [statement.body, statement.orelse]
        results = [
            name for name in stored_names([*statement.body, *statement.orelse]) if self._is_result(name, statement)
        ]
        if not results:
            raise branches.CannotRewriteError("no variable gets a value in it that is read afterwards")
        operands = self._operands(sides)
        written = []
        for name, side in zip(("taken_side", "other_side"), sides, strict=True):
            own = stored_names(side)
            returned = ", ".join(
                one if one in own and one not in _aliases(side) else f"{one}.clone()" for one in results
            )
            written.append(self._function(name, operands, [*self._block(side), f"return {returned}"]))
        call = self._call(written[0][0], written[1][0], operands)
        lines = [*written[0][1], "", *written[1][1], "", f"{', '.join(results)} = {call}"]
        return self._replaced(statement, statement, lines)

    def _is_result(self, name: str, statement: ast.If) -> bool:
        """Whether a variable is read after the branch. Raises: CannotRewriteError if one side does not assign it."""
        end = statement.end_lineno or statement.lineno
        is_read = any(
            isinstance(node, ast.Name) and node.id == name and node.lineno > end
            for node in ast.walk(self.branch.function)
        )
        on_both = name in stored_names(statement.body) and name in stored_names(statement.orelse)
        if is_read and not on_both and not self._is_set_before(name):
            raise branches.CannotRewriteError(f"'{name}' gets a value on one side only, and is read afterwards")
        return is_read

    def _is_set_before(self, name: str) -> bool:
        assert self.branch.statement is not None
        line = self.branch.statement.lineno
        arguments = [one.arg for one in ast.walk(self.branch.function.args) if isinstance(one, ast.arg)]
        return name in arguments or any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) and node.lineno < line
            for node in ast.walk(self.branch.function)
        )

    def _operands(self, sides: Sequence[Sequence[ast.stmt]]) -> list[str]:
        """Variables that a side both reads and changes: they must be passed, because closures cannot change them."""
        own = branches.locals_of(self.branch.function)
        changed = {name for side in sides for name in stored_names(side)}
        read = read_names([node for side in sides for node in side])
        return sorted(name for name in changed & read & own if self._is_set_before(name))

    def _function(self, name: str, operands: Sequence[str], body: Sequence[str]) -> tuple[str, list[str]]:
        name = new_name(name, self.names)
        return name, [f"def {name}({', '.join(operands)}):", *(f"    {line}" if line else "" for line in body)]

    def _call(self, taken: str, other: str, operands: Sequence[str]) -> str:
        given = f", ({', '.join(operands)}{',' if len(operands) == 1 else ''})" if operands else ""
        return f"{self.torch}.cond({self.condition}, {taken}, {other}{given})"

    def _block(self, statements: Sequence[ast.stmt]) -> list[str]:
        """The lines of a side without indentation; results that are operands are copied."""
        if not statements:
            return []
        edits = [
            Edit(self.source.end_of(one), self.source.end_of(one), ".clone()")
            for top in statements
            for node in ast.walk(top)
            if isinstance(node, ast.Return) and node.value is not None
            for one in ([node.value] if not isinstance(node.value, ast.Tuple | ast.List) else node.value.elts)
            if isinstance(one, ast.Name)
        ]
        first, last = statements[0], statements[-1]
        indent = self.source.indent(first.lineno)
        if self.source.start_of(first) != self.source.starts[first.lineno - 1] + len(indent):  # behind the colon
            return [self.source.segment(one, edits) for one in statements]
        line = first.lineno
        while line > 1 and self.source.line_text(line - 1).startswith(f"{indent}#"):
            line -= 1
        text = self.source.extract(self.source.starts[line - 1], self.source.end_of(last), edits)
        return [one.removeprefix(indent).rstrip() for one in text.splitlines()]

    def _replaced(self, first: ast.stmt, last: ast.stmt, lines: Sequence[str]) -> Edit:
        indent = self.source.indent(first.lineno)
        if self.branch.is_elif:
            lines = ["else:", *(f"    {line}" if line else "" for line in lines)]
        text = self.source.newline.join(indent + line if line else "" for line in lines)
        return Edit(self.source.start_of(first), self.source.end_of(last), text[len(indent) :])


def _ends(statements: Sequence[ast.stmt]) -> bool:
    """Whether no statement after these is reached."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, ast.Return)


def _aliases(side: Sequence[ast.stmt]) -> set[str]:
    """Variables that are another name of a value; torch.cond allows no aliases among its results."""
    return {
        name for one in side if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name)
        for name in stored_names(one.targets)
    }  # fmt: skip


def _cloned(node: ast.expr, text: str) -> str:
    return f"{text}.clone()" if isinstance(node, ast.Name) else text
