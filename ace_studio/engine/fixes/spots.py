"""A place where capture stops, with its source text, syntax tree, live module and live functions."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from ace_studio.engine.fixes.source_text import Function, SourceText, statements_at
from ace_studio.engine.subgraphs.run_pieces import is_autograd_function


@dataclass(frozen=True)
class FoundFunction:
    """A live function, autograd function or module class that a control can name."""

    target: Any
    reference: str
    """``module:name``, as a control names it."""
    name: str
    """The name alone, for titles."""


@dataclass(frozen=True)
class Spot:
    """One line of code that stops the capture of a live model."""

    file: str
    line: int
    root: nn.Module
    source: SourceText | None
    """None if the file cannot be read."""
    space: ModuleType | None
    """The live module that was made from the file."""

    @classmethod
    def of(cls, file: str, line: int, root: nn.Module) -> Spot:
        """Find the source and the live module of a line."""
        source = SourceText.read(Path(file))
        if source is not None and not 0 < line < len(source.starts):
            source = None
        return cls(file, line, root, source, _live_module(Path(file)))

    @property
    def scopes(self) -> list[Function | ast.ClassDef]:
        """The functions and classes around the line, outermost first."""
        return self.source.functions_at(self.line) if self.source else []

    @property
    def function(self) -> Function | None:
        """The innermost function around the line."""
        return next((one for one in reversed(self.scopes) if not isinstance(one, ast.ClassDef)), None)

    def calls(self) -> list[ast.Call]:
        """The calls that begin on the line, outermost first."""
        scope = self.function
        if scope is None:
            return []
        inner = statements_at(scope, self.line)[-1:]
        return [
            node
            for top in inner
            for node in ast.walk(top)
            if isinstance(node, ast.Call) and node.lineno <= self.line <= (node.func.end_lineno or node.lineno)
        ]

    def functions(self) -> Iterator[FoundFunction]:
        """Functions that a control can name: the one around the line, then those called on it."""
        known: set[int] = set()
        for found in (*self._enclosing(), *self._called()):
            if id(found.target) not in known:
                known.add(id(found.target))
                yield found

    def classes(self) -> Iterator[FoundFunction]:
        """Classes of submodules that can be kept whole: that of the forward around the line, and those called on it."""
        kinds = {type(child) for child in self.root.modules() if child is not self.root}
        candidates = [found for found in self.functions() if inspect.isclass(found.target)]
        for kind in (*self._enclosing_classes(), *(found.target for found in candidates)):
            if kind in kinds and not kind.__module__.startswith("torch."):
                yield FoundFunction(kind, reference_of(kind), kind.__name__)

    def _enclosing_classes(self) -> Iterator[type]:
        """Classes of the model's submodules whose code contains the line."""
        name = next((one.name for one in reversed(self.scopes) if isinstance(one, ast.ClassDef)), "")
        for kind in dict.fromkeys(type(child) for child in self.root.modules()):
            if kind.__name__ == name and self.space is not None and kind.__module__ == self.space.__name__:
                yield kind

    def _enclosing(self) -> Iterator[FoundFunction]:
        """The function around the line, unless it is a module's forward, without which there is no graph."""
        names = [one.name for one in self.scopes]
        if self.space is None or self.function is None:
            return
        target: Any = self.space
        for name in names:
            owner, target = target, getattr(target, name, None)
            if is_autograd_function(owner):
                yield FoundFunction(owner, reference_of(owner), owner.__name__)
                return
        is_plain = callable(target) and not inspect.isclass(target)
        if is_plain and self.function.name not in ("forward", "__call__", "__init__"):
            yield FoundFunction(target, f"{self.space.__name__}:{'.'.join(names)}", names[-1])

    def _called(self) -> Iterator[FoundFunction]:
        for call in self.calls():
            target = self.resolve(call.func)
            if is_autograd_function(owner := getattr(target, "__self__", None)):
                yield FoundFunction(owner, reference_of(owner), owner.__name__)
            elif isinstance(target, nn.Module):
                kind = type(target)
                yield FoundFunction(kind, reference_of(kind), kind.__name__)
            elif inspect.isclass(target) or not callable(target):
                continue
            elif found := self._named(call.func, target):
                yield found

    def _named(self, written: ast.expr, target: Any) -> FoundFunction | None:
        """The function with an importable name; None if it has none."""
        plain = getattr(target, "__func__", target)
        reference = reference_of(plain)
        if not reference and self.space is not None and isinstance(written, ast.Name):
            reference = f"{self.space.__name__}:{written.id}" if hasattr(self.space, written.id) else ""
        return FoundFunction(plain, reference, reference.rpartition(":")[2]) if reference else None

    def resolve(self, expression: ast.expr) -> Any:
        """The live object that a dotted name means on the line; None if that cannot be determined."""
        if isinstance(expression, ast.Attribute):
            owner = self.resolve(expression.value)
            return None if owner is None else getattr(owner, expression.attr, None)
        if not isinstance(expression, ast.Name):
            return None
        if expression.id == "self":
            kinds = tuple(self._enclosing_classes())
            return next((child for child in self.root.modules() if type(child) in kinds), None)
        if expression.id in (local := self._local_imports()):
            return local[expression.id]
        if self._is_local(expression.id):
            return None
        return getattr(self.space, expression.id, None) or getattr(builtins, expression.id, None)

    def _is_local(self, name: str) -> bool:
        function = self.function
        if function is None:
            return False
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        stored = (node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        return any(one is not None and one.arg == name for one in named) or any(node.id == name for node in stored)

    def _local_imports(self) -> dict[str, Any]:
        """Names imported inside the function -> their objects, if those are loaded."""
        found: dict[str, Any] = {}
        for node in ast.walk(self.function) if self.function else ():
            if isinstance(node, ast.Import):
                for one in node.names:
                    name = one.name if one.asname else one.name.partition(".")[0]
                    found[one.asname or name] = sys.modules.get(name)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for one in node.names:
                    found[one.asname or one.name] = getattr(sys.modules.get(node.module or ""), one.name, None)
        return {name: value for name, value in found.items() if value is not None}


def reference_of(target: Any) -> str:
    """``module:name`` from which a function or class can be imported; empty if there is none."""
    space, name = getattr(target, "__module__", None), getattr(target, "__qualname__", "")
    if not isinstance(space, str) or "<" in name:
        return ""
    try:
        owner: Any = importlib.import_module(space) if space in sys.modules else None
    except ImportError:
        return ""
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return f"{space}:{name}" if owner is target else ""


def _live_module(path: Path) -> ModuleType | None:
    resolved = path.resolve()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(module, ModuleType) or not isinstance(file, str) or Path(file).name != resolved.name:
            continue
        if Path(file).resolve() == resolved and module.__name__ != "__main__":
            return module
    return None
