"""Finds the user's own files that a file of code imports, from the import statements; nothing is imported.

Imports that are computed while the code runs are not found here. The import gate asks for these when they happen.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from ace_studio.engine.load.entries import PythonSource, parse_source, read_source
from ace_studio.engine.load.sniff import checked_sha256
from ace_studio.engine.load.trust import CodeToRun
from ace_studio.engine.load.user_code import is_users_module
from ace_studio.records.errors import AceError

MOST_FILES = 400
_SUFFIXES = (".py", *EXTENSION_SUFFIXES, ".pyc")


def imports_beside(sources: Iterable[PythonSource]) -> list[CodeToRun]:
    """The files beside and below the sources that they import, and those that these import in turn.

    Returns: Each file once, the nearest first; at most `MOST_FILES`, without the sources and without empty files.
    """
    found: dict[Path, CodeToRun] = {}
    waiting = list(sources)
    seen = {source.path.resolve() for source in waiting}
    folders: dict[Path, None] = {}
    while waiting and len(found) < MOST_FILES:
        source = waiting.pop(0)
        if source.path.resolve() not in found:
            folders |= dict.fromkeys((source.path.parent, *_package_roots(source)))
        for name, place in _modules(source, tuple(folders)):
            for file in files_of_module(name, place):
                if file.resolve() in seen:
                    continue
                seen.add(file.resolve())
                content = read_source(file)  # a compiled module may be large
                if content.strip():
                    would_run = (f"{file.name}, which {source.path.name} imports",)
                    found[file.resolve()] = CodeToRun(file.resolve(), checked_sha256(file), would_run)
                waiting += _parsed(file, content)
    return list(found.values())


def _parsed(file: Path, content: bytes) -> list[PythonSource]:
    try:
        return [parse_source(file, content)] if file.suffix == ".py" else []
    except AceError:  # its import will fail, and says why
        return []


def _package_roots(source: PythonSource) -> list[Path]:
    """The folder above the packages of a file with relative imports, which is put on ``sys.path``."""
    folder = source.path.parent
    if not source.has_relative_imports:
        return []
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return [folder if folder != source.path.parent else folder.parent]


def _modules(source: PythonSource, places: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    """Dotted names that the source may import, and the folder in which Python looks for each."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = f"{node.module}." if node.module else ""
            names = [f"{module}{alias.name}" for alias in node.names if alias.name != "*"] or [module.rstrip(".")]
        else:
            continue
        level = node.level if isinstance(node, ast.ImportFrom) else 0
        if level:
            place = source.path.parents[min(level, len(source.path.parents)) - 1]
            yield from ((name, place) for name in names)
        else:
            yield from ((name, place) for name in names if not _is_loaded(name) for place in places)


def _is_loaded(name: str) -> bool:
    """Whether Python takes the module from memory, because a library has imported it."""
    module = sys.modules.get(name.partition(".")[0])
    return module is not None and not is_users_module(module)


def files_of_module(name: str, place: Path) -> Iterator[Path]:
    """The files that importing a dotted name from a folder runs: of every package on the way, and of the module."""
    folder = place
    for part in name.split("."):
        for base in (folder / part / "__init__", folder / part):
            files = [base.with_name(base.name + suffix) for suffix in _SUFFIXES]
            file = next((one for one in files if one.is_file()), None)
            if file is not None:
                yield file
                break
        folder = folder / part
