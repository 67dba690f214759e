"""Lets the import system run only code whose content is trusted.

Every import ends in one of Python's own loaders, whether it began with an import statement, with importlib or inside a
library such as transformers. In the engine's processes these loaders ask here first: code outside of the environment
(the standard library, installed packages, what was on ``sys.path`` at the start) is read once, hashed, compared with
what the user trusts, and compiled from these very bytes. Cached bytecode of such code is never used.

Python files that a library writes and runs by itself, as torch's compiler does, do not pass through the loaders.
"""

import hashlib
import marshal
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable
from importlib import machinery, util
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ace_studio.engine.load.trust import CodeToRun, require_trust

PACKAGE = Path(__file__).resolve().parents[2]
_BYTECODE_HEADER = 16


class ImportGate:
    """What the loaders of this process ask: which files are gated, and whether their content may run."""

    def __init__(self) -> None:
        self.environment: tuple[str, ...] = ()
        """Folders whose code runs unasked, with a separator at the end."""
        self.folders: tuple[str, ...] = ()
        """The user's folders: gated even inside of the environment."""
        self._is_trusted: Callable[[str], bool] | None = None
        self.ran: dict[str, str] = {}
        """Path -> SHA-256 of the code that the present job has imported."""
        self.refused: list[CodeToRun] = []
        """Code that the present job wanted to import and was not trusted; user code may have hidden the exception."""

    def begin(self, is_trusted: Callable[[str], bool]) -> None:
        """Ask this function from now on; forget the earlier job."""
        self._is_trusted, self.folders = is_trusted, ()
        self.ran, self.refused = {}, []

    def add_folder(self, folder: Path) -> None:
        """Gate what lies in this folder."""
        self.folders = (*self.folders, f"{folder.resolve()}{os.sep}")

    def is_gated(self, file: str) -> bool:
        """Whether the code of a file needs trust. Libraries of an environment inside a model's folder need none."""
        if self._is_trusted is None:
            return False
        path = os.path.realpath(file)
        return _deepest(path, self.environment) <= _deepest(path, self.folders)

    def check(self, file: str, content: bytes) -> None:
        """Note that the content runs. Raises: AceError(UNTRUSTED) if the user does not trust it."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = os.path.realpath(file)
        if content.strip() and self._is_trusted is not None and not self._is_trusted(sha256):
            code = CodeToRun(Path(path), sha256, (f"{Path(path).name}, which is imported while the model runs",))
            self.refused.append(code)
            require_trust([code], lambda _: False)
        self.ran[path] = sha256

    def raise_refused(self) -> None:
        """Raises: AceError(UNTRUSTED) if code was refused, whatever became of the exception in the user's code."""
        require_trust(self.refused, lambda _: False)


GATE = ImportGate()
"""The gate of this process: there is one import system."""


def install_gate() -> None:
    """Make Python's loaders ask `GATE`; called once, at the start of a process of the engine."""
    if GATE.environment:
        return
    GATE.environment = _environment_folders()
    machinery.SourceFileLoader.get_code = _gated_source  # type: ignore[method-assign,assignment]
    machinery.SourcelessFileLoader.get_code = _gated_bytecode  # type: ignore[method-assign]
    machinery.ExtensionFileLoader.create_module = _gated_extension  # type: ignore[method-assign]


def _environment_folders() -> tuple[str, ...]:
    """The standard library, installed packages, ACE Studio, and what is on ``sys.path`` without the present folder."""
    installed = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    at_start = [entry for entry in sys.path if entry and Path(entry).resolve() != Path.cwd()]
    folders = (*installed, *at_start, str(PACKAGE))
    return tuple(dict.fromkeys(f"{os.path.realpath(folder)}{os.sep}" for folder in folders))


def _deepest(path: str, folders: Iterable[str]) -> int:
    """Length of the longest of these folders that contains the path; 0 if none does."""
    return max((len(folder) for folder in folders if path.startswith(folder)), default=0)


_plain_source = machinery.SourceFileLoader.get_code
_plain_bytecode = machinery.SourcelessFileLoader.get_code
_plain_extension = machinery.ExtensionFileLoader.create_module


def _gated_source(self: machinery.SourceFileLoader, fullname: str) -> CodeType | None:
    path = self.get_filename(fullname)
    if not GATE.is_gated(path):
        return _plain_source(self, fullname)
    content = self.get_data(path)
    GATE.check(path, content)
    return self.source_to_code(content, path)


def _gated_bytecode(self: machinery.SourcelessFileLoader, fullname: str) -> CodeType | None:
    path = self.get_filename(fullname)
    if not GATE.is_gated(path):
        return _plain_bytecode(self, fullname)
    content = self.get_data(path)
    GATE.check(path, content)
    if content[:4] != util.MAGIC_NUMBER:
        raise ImportError(f"{path} is bytecode of another Python", name=fullname, path=path)
    code: CodeType = marshal.loads(content[_BYTECODE_HEADER:])
    return code


def _gated_extension(self: machinery.ExtensionFileLoader, spec: Any) -> ModuleType:
    """Compiled modules are gated in the user's folders only, and not in a cache of torch's compilers below one."""
    path = os.path.realpath(self.path)
    caches = (os.environ.get(f"{one}_DIR") for one in ("TORCHINDUCTOR_CACHE", "TORCH_EXTENSIONS", "TRITON_CACHE"))
    built = (f"{os.path.realpath(folder)}{os.sep}" for folder in caches if folder)
    if GATE.is_gated(path) and _deepest(path, GATE.folders) > _deepest(path, built):
        GATE.check(path, Path(path).read_bytes())
    return _plain_extension(self, spec)


def hashes_of(files: Iterable[Path]) -> dict[str, str]:
    """Path -> SHA-256 of files of code, for a process without the gate."""
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}
