"""Imports the user's files and calls their functions.

Catches every exception there, because user code may raise anything.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from pathlib import Path
from types import ModuleType
from typing import Any

from ace_studio.engine.load.entries import PythonSource
from ace_studio.engine.load.import_gate import GATE
from ace_studio.engine.load.user_errors import is_library_file, user_code_error
from ace_studio.records.errors import AceError

MARK = "__ace_studio_user_module__"
"""Attribute of the modules that a load brought in, so that the next load can forget them."""

_COMPILED = tuple(importlib.machinery.EXTENSION_SUFFIXES)
"""Endings of modules that cannot be imported twice."""


class _UserFolder(str):
    """A folder that this module or the user's code put on ``sys.path``; its type marks it for removal."""

    modules_before: frozenset[str]

    @classmethod
    def of(cls, folder: str) -> _UserFolder:
        """Mark a folder and note which modules are loaded already."""
        marked = cls(folder)
        marked.modules_before = frozenset(sys.modules)
        return marked


class _FixedSourceLoader(importlib.machinery.SourceFileLoader):
    """Compiles the bytes that were hashed for the trust check, even if the file or a .pyc has changed since."""

    def __init__(self, name: str, path: str, content: bytes) -> None:
        super().__init__(name, path)
        self._content = content

    def get_data(self, path: str) -> bytes:
        """The given bytes."""
        return self._content if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> dict[str, Any]:
        """Raises: OSError. Without a date of the source Python neither reads nor writes a .pyc."""
        raise OSError(path)


class UserModules:
    """The user's ``.py`` files during one load.

    Modules of an earlier load are removed first, so that edited files are read again. A file is registered in
    ``sys.modules`` under its own name, because tracing and pickling look functions up there.
    """

    def __init__(self) -> None:
        self._imported: dict[Path, ModuleType] = {}
        self._folders: list[str] = []
        _forget_earlier_load()

    def import_file(self, source: PythonSource, content: bytes) -> ModuleType:
        """Import the file once per load; later calls return the same module.

        Raises: AceError(USER_CODE or NOT_INSTALLED) if its top level raises or exits.
        """
        path = source.path.resolve()
        if path in self._imported:
            return self._imported[path]
        with self.guard(f"Importing {path.name}", folder=path.parent):
            module = _import(path, content, in_package=source.has_relative_imports, guard=self)
        self._imported[path] = module
        return module

    @contextlib.contextmanager
    def guard(self, doing: str, *, folder: Path | None = None) -> Iterator[None]:
        """Run the user's code with its folders first on ``sys.path``; its exceptions become AceErrors.

        AceError and KeyboardInterrupt pass through, so that a job can be cancelled inside the user's evaluate function.
        """
        if folder is not None:
            self.add_folder(folder)
        before = set(sys.modules)
        path_before = list(sys.path)
        writes_before = sys.dont_write_bytecode
        watchers, depth = (sys.gettrace(), sys.getprofile()), sys.getrecursionlimit()
        sys.path[:0] = self._folders
        sys.dont_write_bytecode = True  # leave no __pycache__ in the user's folder
        try:
            yield
        except (AceError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # user code raises anything; its sys.exit() must not end the engine
            raise user_code_error(error, doing) from error
        finally:
            # The engine needs these at once, before the job ends: it imports and captures.
            sys.settrace(watchers[0])
            sys.setprofile(watchers[1])
            sys.setrecursionlimit(max(depth, sys.getrecursionlimit()))
            sys.dont_write_bytecode = writes_before
            remaining = _without_first(sys.path, self._folders)
            remaining += [entry for entry in path_before if entry not in remaining]
            sys.path[:] = [entry if entry in path_before else _UserFolder.of(entry) for entry in remaining]
            self._mark_new_modules(before)

    def add_folder(self, folder: Path) -> None:
        """Put the folder on ``sys.path``: first inside `guard`, last afterwards.

        It stays there because a forward() may import a neighbour late, and last so that it hides no library's module.
        """
        name = str(folder)
        GATE.add_folder(folder)
        if name not in self._folders:
            self._folders.append(name)
            sys.path.append(_UserFolder.of(name))

    def function(self, target: Callable[..., Any], doing: str) -> Callable[..., Any]:
        """Wrap the function in `guard`, and the iteration over its result too if that is lazy."""

        @functools.wraps(target)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.guard(doing):
                result = target(*args, **kwargs)
            if not _is_lazy(result):
                return result
            kind = _GuardedSized if isinstance(result, Sized) else _GuardedIterable
            return kind(result, self, doing)

        return call

    def files(self) -> list[Path]:
        """Every imported file of the user, sorted."""
        marked = [module for module in list(sys.modules.values()) if is_users_module(module)]
        places = {Path(place).resolve() for place in map(_place_of, marked) if place}
        return sorted({place for place in places if place.is_file()} | set(self._imported))

    def _mark_new_modules(self, before: set[str]) -> None:
        """Mark new modules that belong to no library, wherever the user's own ``sys.path`` found them."""
        new = sorted(sys.modules.keys() - before)  # packages before what is in them
        known = {name.partition(".")[0] for name in before} if new else set()
        for name in new:
            if name.partition(".")[0] in known and not _parent_is_marked(name):
                continue
            place = _place_of(module := sys.modules[name])
            if place and not is_library_file(place) and not place.endswith(_COMPILED):
                setattr(module, MARK, True)


class _GuardedIterable:
    """An iterable that a user's function returned; every step of the iteration runs user code."""

    def __init__(self, items: Iterable[Any], modules: UserModules, doing: str) -> None:
        self._items = items
        self._modules = modules
        self._doing = doing

    def __iter__(self) -> Iterator[Any]:
        with self._modules.guard(self._doing):
            iterator = _iterate(self._items)
        while True:
            with self._modules.guard(self._doing):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item


class _GuardedSized(_GuardedIterable):
    """A `_GuardedIterable` with a length, such as a DataLoader."""

    def __len__(self) -> int:
        with self._modules.guard(self._doing):
            return len(self._items)  # type: ignore[arg-type]  # made for sized items only


def _is_lazy(value: object) -> bool:
    """Whether iterating over the value runs user code; arrays and tensors are plain values."""
    if isinstance(value, str | bytes | tuple | list | Mapping | set | frozenset) or hasattr(value, "__array__"):
        return False
    return isinstance(value, Iterable) or _is_dataset(value)


def _is_dataset(value: object) -> bool:
    """Whether the value is like a torch Dataset: it has a length and items, and need not raise IndexError."""
    return not isinstance(value, Iterable) and hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _iterate(items: Any) -> Iterator[Any]:
    return (items[index] for index in range(len(items))) if _is_dataset(items) else iter(items)


def _import(path: Path, content: bytes, *, in_package: bool, guard: UserModules) -> ModuleType:
    name = _package_name(path, guard) if in_package else _module_name(path)
    present = sys.modules.get(name)
    if present is not None and _same_file(present, path):
        return present
    linecache.checkcache(str(path))
    importlib.invalidate_caches()
    spec = importlib.util.spec_from_file_location(name, path, loader=_FixedSourceLoader(name, str(path), content))
    if spec is None or spec.loader is None:
        raise ImportError(f"Python has no way to import {path.name}")
    module = importlib.util.module_from_spec(spec)
    setattr(module, MARK, True)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:  # user code; it is raised again
        sys.modules.pop(name, None)
        raise
    return module


def _module_name(path: Path) -> str:
    """The file's own name, with a number if a library has that name (``json.py``, ``onnx.py``)."""
    name, attempt = path.stem, 1
    while _is_taken(name, path):
        attempt += 1
        name = f"{path.stem}_{attempt}"
    return name


def _is_taken(name: str, path: Path) -> bool:
    present = sys.modules.get(name)
    if present is not None:
        return not _same_file(present, path)
    if name in sys.stdlib_module_names:
        return True
    with contextlib.suppress(ImportError, ValueError):
        libraries = [entry for entry in sys.path if "site-packages" in entry or "dist-packages" in entry]
        return importlib.machinery.PathFinder.find_spec(name, libraries) is not None
    return False


def _package_name(path: Path, guard: UserModules) -> str:
    """Import the packages of a file that uses relative imports, and return its dotted name."""
    parts, folder = [path.stem], path.parent
    while True:
        parts.insert(0, folder.name)
        has_init = (folder / "__init__.py").exists()
        folder = folder.parent
        if not has_init or not (folder / "__init__.py").exists():
            break
    guard.add_folder(folder)
    sys.path.insert(0, str(folder))
    importlib.import_module(".".join(parts[:-1]))
    return ".".join(parts)


def _same_file(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).resolve() == path


def _place_of(module: ModuleType) -> str:
    """The module's file, or the folder of a package without an ``__init__.py``; empty if it has neither."""
    file = getattr(module, "__file__", None)
    places = [file] if isinstance(file, str) else getattr(module, "__path__", ())
    return next((one for one in places if isinstance(one, str)), "")


def is_users_module(module: ModuleType) -> bool:
    """Whether a load brought the module in from the user's files."""
    return bool(vars(module).get(MARK)) if isinstance(module, ModuleType) else False


def _parent_is_marked(name: str) -> bool:
    parent = sys.modules.get(name.rpartition(".")[0])
    return parent is not None and is_users_module(parent)


def _forget_earlier_load() -> None:
    folders = [entry for entry in sys.path if isinstance(entry, _UserFolder)]
    for name, module in list(sys.modules.items()):
        if is_users_module(module) or any(_came_late(name, module, folder) for folder in folders):
            del sys.modules[name]
    sys.path[:] = [entry for entry in sys.path if not isinstance(entry, _UserFolder)]
    for file in [one for one in list(linecache.cache) if not is_library_file(one)]:
        linecache.checkcache(file)


def _came_late(name: str, module: ModuleType, folder: _UserFolder) -> bool:
    """Whether the module was imported from the folder outside of `guard`, by a forward() for example."""
    if name in folder.modules_before:
        return False
    place = _place_of(module)
    return place.startswith(f"{folder}{os.sep}") and not is_library_file(place) and not place.endswith(_COMPILED)


def _without_first(entries: list[str], folders: list[str]) -> list[str]:
    """The entries without those that `guard` put first; entries that user code added stay."""
    remaining = list(entries)
    for folder in folders:
        for index, entry in enumerate(remaining):
            if entry == folder and not isinstance(entry, _UserFolder):
                del remaining[index]
                break
    return remaining
