"""Loads a model from a changed copy of one of its files; the user's file and all loaded modules stay unchanged."""

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
    """Inside the ``with`` block, importing ``path`` runs the content of ``copy`` instead.

    The module keeps its name and its ``__file__``, so that files beside it are found; line numbers in tracebacks are
    those of the copy. Afterwards ``sys.modules`` and ``sys.path`` are restored, except for libraries that were imported
    inside the block.
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
    """Remove the user's modules that were loaded since, and restore those that were replaced or removed."""
    for name, module in list(sys.modules.items()):
        if name not in before and _is_users(module):
            del sys.modules[name]
    sys.modules.update(before)


def _is_users(module: ModuleType) -> bool:
    """Whether a module is the user's own; a module that forward() imported late has no mark."""
    file = getattr(module, "__file__", None)
    return MARK in getattr(module, "__dict__", {}) or (isinstance(file, str) and not is_library_file(file))


class _CopyLoader(importlib.machinery.SourceFileLoader):
    """Compiles the copy; a cached .pyc of the original must not be used."""

    def __init__(self, name: str, path: str, copy: Path) -> None:
        super().__init__(name, path)
        self._copy = copy

    def get_code(self, _: str) -> CodeType:
        """Compile the copy."""
        return self.source_to_code(self._copy.read_bytes(), str(self._copy))


class _Finder:
    """Finds modules as Python does, with another loader for the changed file."""

    def __init__(self, path: Path, copy: Path) -> None:
        self._path = path
        self._copy = copy

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the changed file; None for all other modules."""
        if name.rpartition(".")[2] not in (self._path.stem, self._path.parent.name):
            return None
        spec: Any = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not spec.origin or Path(spec.origin).resolve() != self._path:
            return None
        spec.loader = _CopyLoader(spec.loader.name, spec.origin, self._copy)
        return spec  # type: ignore[no-any-return]
