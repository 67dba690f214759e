"""Loads a model from a changed copy of one of its files; the user's file and all loaded modules stay unchanged."""

import contextlib
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from ace_studio.engine.load.user_code import MARK
from ace_studio.engine.load.user_errors import is_library_file
from ace_studio.engine.replaced import replaced_attribute


@contextlib.contextmanager
def changed_source(path: Path, copy: Path) -> Iterator[None]:
    """Inside the ``with`` block, importing ``path`` runs the content of ``copy`` instead.

    The module keeps its name and its ``__file__``, so that files beside it are found; line numbers in tracebacks are
    those of the copy. Afterwards ``sys.modules`` and ``sys.path`` are restored, except for libraries that were imported
    inside the block.
    """
    modules, folders, path = dict(sys.modules), list(sys.path), path.resolve()
    plain = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        """Compile the copy; a cached .pyc of the original must not be used."""
        if Path(loader.get_filename(name)).resolve() != path:
            return plain(loader, name)
        return loader.source_to_code(copy.read_bytes(), str(copy))

    try:
        with replaced_attribute(SourceFileLoader, "get_code", get_code):
            yield
    finally:
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
