"""Loading a model from a changed copy of one of its files; the user's file and everything loaded stay as they are."""

from __future__ import annotations

import contextlib
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ace_studio.engine.load.user_code import MARK, compile_instead
from ace_studio.engine.load.user_errors import is_library_file


@contextlib.contextmanager
def changed_source(path: Path, copy: Path) -> Iterator[None]:
    """While this holds, a load that imports ``path`` runs the content of ``copy`` in its place.

    The module keeps its name and its ``__file__``, so neighbours, packages and data beside it are found; its lines, as
    a traceback has them, are those of the copy. Afterwards ``sys.modules`` and ``sys.path`` are as they were before,
    but for libraries that were imported meanwhile.
    """
    modules, folders = dict(sys.modules), list(sys.path)
    finder = _Finder(path.resolve(), copy)
    sys.meta_path.insert(0, finder)
    try:
        with compile_instead(path.resolve(), copy):
            yield
    finally:
        sys.meta_path.remove(finder)
        _put_back(modules)
        sys.path[:] = folders


def _put_back(before: dict[str, ModuleType]) -> None:
    """Forget the user's modules that were loaded since, and bring back those that were replaced or forgotten."""
    for name, module in list(sys.modules.items()):
        if name not in before and _is_users(module):
            del sys.modules[name]
    sys.modules.update(before)


def _is_users(module: ModuleType) -> bool:
    """Whether a module is the user's own; one that a forward() imported late has no mark."""
    file = getattr(module, "__file__", None)
    return MARK in getattr(module, "__dict__", {}) or (isinstance(file, str) and not is_library_file(file))


class _CopyLoader(importlib.machinery.SourceFileLoader):
    """Compiles the copy. A cached .pyc is of the original and must not be used."""

    def __init__(self, name: str, path: str, copy: Path) -> None:
        super().__init__(name, path)
        self._copy = copy

    def get_code(self, fullname: str) -> CodeType:
        """The copy's code."""
        del fullname
        return self.source_to_code(self._copy.read_bytes(), str(self._copy))


class _Finder:
    """Finds what Python would find, with another loader for the one file."""

    def __init__(self, path: Path, copy: Path) -> None:
        self._path = path
        self._copy = copy

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the file that was changed; None for everything else."""
        if name.rpartition(".")[2] not in (self._path.stem, self._path.parent.name):
            return None
        spec: Any = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not spec.origin or Path(spec.origin).resolve() != self._path:
            return None
        spec.loader = _CopyLoader(spec.loader.name, spec.origin, self._copy)
        return spec  # type: ignore[no-any-return]
