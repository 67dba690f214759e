"""Finds and calls the callables that a recipe names: ``name`` in the model's source, or ``file.py:name``."""

from __future__ import annotations

import difflib
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ace_studio.engine.load.entries import PythonSource, list_entries, parse_source, read_source
from ace_studio.engine.load.user_code import UserModules
from ace_studio.records.entry_choice import likely_entries
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import EntryPoint

_MOST_SHOWN = 12


@dataclass(frozen=True)
class CodeFile:
    """A ``.py`` file as it was when its hash was taken; exactly these bytes run."""

    path: Path
    content: bytes
    sha256: str
    source: PythonSource
    entries: tuple[EntryPoint, ...]

    @classmethod
    def read(cls, path: Path) -> CodeFile:
        """Read and parse. Raises: AceError(BAD_FILE) if it is not Python."""
        content = read_source(path)
        source = parse_source(path, content)
        return cls(path, content, hashlib.sha256(content).hexdigest(), source, list_entries(source))


@dataclass(frozen=True)
class CallableReference:
    """A callable that the recipe names: the file it is in, and its (dotted) name there."""

    path: Path
    name: str
    role: str
    """Where the recipe names it: ``entry``, ``[inputs] tracing``, ..."""


def parse_reference(text: str, *, role: str, folder: Path, default: Path | None) -> CallableReference:
    """Parse ``name`` or ``file.py:name``; a plain name is in the default file.

    Raises: AceError(RECIPE) if there is no default file to look a plain name up in.
    """
    file, colon, name = text.rpartition(":")
    if colon and file:
        return CallableReference((folder / file).resolve(), name.strip(), role)
    if default is None:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"The recipe says {role} = '{text}', but not in which file",
            why="the model's source is not a Python file",
            remedy=f"write {role} = 'file.py:{text or 'name'}'",
        )
    return CallableReference(default, text.strip(), role)


def choose_entry(code: CodeFile, *, taken: Iterable[str] = ()) -> str:
    """Choose the callable that makes the model, when the recipe names none.

    `likely_entries` must be sure which one it is.

    Raises: AceError(NOT_FOUND) with the choices if there are several, or none.
    """
    choices = likely_entries(code.entries, taken=set(taken))
    if len(choices) == 1:
        return choices[0]
    has_none = "neither a model nor a callable that makes one without arguments"
    raise AceError.of(
        ErrorCode.NOT_FOUND,
        f"{code.path.name} has {'several names that could give the model' if choices else has_none}",
        why=_listing(code.entries),
        remedy="name one as the entry"
        if choices
        else "add a function without arguments that returns the module, or "
        "keep the module in a variable at the top level",
        where=str(code.path),
    )


class CodeLibrary:
    """The trusted ``.py`` files that a recipe names: imports them on first use and finds their callables."""

    def __init__(self, files: Mapping[Path, CodeFile], user: UserModules) -> None:
        self.files = files
        self.user = user

    def module_of(self, reference: CallableReference) -> ModuleType:
        """Import the file of a reference. Raises: AceError(USER_CODE or NOT_INSTALLED)."""
        code = self.files[reference.path]
        return self.user.import_file(code.source, code.content)

    def find(self, reference: CallableReference) -> Any:
        """Find what a reference names. Raises: AceError(NOT_FOUND) with the nearest names; AceError(USER_CODE)."""
        return find_target(self.module_of(reference), self.files[reference.path], reference)

    def function(self, reference: CallableReference) -> Callable[..., Any]:
        """Find the function that a reference names; errors inside of it become AceErrors.

        Raises: AceError(NOT_FOUND) if it is not there or cannot be called; AceError(USER_CODE) from the import.
        """
        target = self.find(reference)
        code = self.files[reference.path]
        if not callable(target):
            raise AceError.of(
                ErrorCode.NOT_FOUND,
                f"'{reference.name}' in {code.path.name} cannot be called",
                why=f"it is {describe_value(target)}, and {reference.role} must be a function",
                remedy=f"write a function that returns it, and name that as {reference.role}",
                where=str(code.path),
            )
        _check_can_be_called(target, reference, code.path)
        return self.user.function(target, f"{reference.name}() in {code.path.name}")


_CALLED_WITH: Mapping[str, tuple[str, ...]] = {
    "[evaluate] function": ("predict",),
    "[finetune] loss": ("output", "label"),
}
"""Role -> arguments that its callable is called with; all others are called without any."""


def _check_can_be_called(target: Callable[..., Any], reference: CallableReference, path: Path) -> None:
    """Refuse a function whose signature does not fit its call, before anything is traced or built."""
    given = _CALLED_WITH.get(reference.role, ())
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):  # builtins have none
        return
    try:
        signature.bind(*given)
    except TypeError as error:
        shown = ", ".join(given)
        code = getattr(target, "__code__", None)
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"{reference.name}{signature} cannot be called as {reference.role}",
            why=f"it is called as {reference.name}({shown}): {error}",
            remedy=f"take {shown or 'no argument'} alone; what else it needs, it can make or load itself",
            where=f"{path}:{code.co_firstlineno}" if code is not None else str(path),
        ) from error


def find_target(module: ModuleType, code: CodeFile, reference: CallableReference) -> Any:
    """Find what a reference names in the imported file. Raises: AceError(NOT_FOUND) with the nearest names."""
    target: Any = module
    for part in reference.name.split("."):
        target = getattr(target, part, None)
        if target is None:
            close = difflib.get_close_matches(reference.name, [entry.name for entry in code.entries], n=1, cutoff=0.5)
            raise AceError.of(
                ErrorCode.NOT_FOUND,
                f"{code.path.name} has no '{reference.name}', which the recipe names as {reference.role}",
                why=_listing(code.entries),
                remedy=f"did you mean '{close[0]}'?" if close else f"name one of them as {reference.role}",
                where=str(code.path),
            )
    return target


def _listing(entries: Iterable[EntryPoint]) -> str:
    shown = [f"{entry.name}{entry.signature} in line {entry.line}" for entry in entries]
    if not shown:
        return "it defines no functions, classes or models at its top level"
    return "it has " + ", ".join(shown[:_MOST_SHOWN]) + (" ..." if len(shown) > _MOST_SHOWN else "")


def describe_value(value: object) -> str:
    """Describe a value for a message: ``a dict with 3 entries``, ``None``, ``the class Net``."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    if isinstance(value, tuple | list | dict | set | frozenset):
        kinds = [type(item).__name__ for item in list(value)[:4]] if isinstance(value, tuple | list) else []
        return f"a {name} with {len(value)} entries" + (f" of {', '.join(kinds)}" if kinds else "")
    return f"an object of type {name}"
