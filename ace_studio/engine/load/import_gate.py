"""Lets the import system run only code whose content is trusted.

Every import ends in one of Python's own loaders, whether it began with an import statement, with importlib, runpy, an
entry point or inside a library such as transformers, and whoever found the module. In the engine's processes these
loaders ask here first: code outside of the environment (the standard library, installed packages, what was on
``sys.path`` at the start) is read once, hashed, compared with what the user trusts, and compiled from these very bytes.
So are the scripts of ``runpy.run_path`` and the lines of ``.pth`` files. Cached bytecode of such code is never used; a
zip archive counts as one file.

What trusted code, or a library that it calls, reads and executes by itself does not pass through the loaders: torch's
compiler does so with files that it wrote.
"""

import hashlib
import io
import marshal
import os
import site
import sys
import sysconfig
import tempfile
import zipimport
from collections.abc import Callable, Iterable
from importlib import machinery, util
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from ace_studio.engine.load.trust import CodeToRun, require_trust
from ace_studio.records.private_folder import compiled_code_folder, private_folder
from ace_studio.records.safe_file import write_atomically

PACKAGE = Path(__file__).resolve().parents[2]
_BYTECODE_HEADER = 16
_IN_ARCHIVE = (("/__init__.py", True), ("/__init__.pyc", True), (".py", False), (".pyc", False))
"""Endings of a module in an archive, and whether it is a package."""
_COMPILERS = (
    ("TORCHINDUCTOR_CACHE_DIR", compiled_code_folder(Path(tempfile.gettempdir()))),
    ("TORCH_EXTENSIONS_DIR", Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "torch_extensions"),
    ("TRITON_CACHE_DIR", "~/.triton"),
)
"""Where torch's compilers keep the modules that they build: a variable, and the folder without it."""


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
        self.refused: dict[str, CodeToRun] = {}
        """Code that the present job wanted to import and was not trusted; user code may have hidden the exception."""
        self._archives: dict[str, ZipFile] = {}
        """The archives that the present job imports from, in memory."""

    def begin(self, is_trusted: Callable[[str], bool]) -> None:
        """Ask this function from now on; forget the earlier job."""
        self._is_trusted, self.folders = is_trusted, ()
        self.ran, self.refused, self._archives = {}, {}, {}

    def add_folder(self, folder: Path) -> None:
        """Gate what lies in this folder."""
        self.folders = (*self.folders, *_folders([folder]))

    def is_gated(self, file: str) -> bool:
        """Whether the code of a file needs trust. Libraries of an environment inside a model's folder need none.

        A link in the user's folder that leads to a library needs it: it may lead elsewhere when the file is read.
        """
        if self._is_trusted is None:
            return False
        path, name = os.path.realpath(file), os.path.abspath(file)  # noqa: PTH100 - with its links
        is_link = _deepest(name, self.environment) < _deepest(name, self.folders)
        return is_link or _deepest(path, self.environment) <= _deepest(path, self.folders)

    def check(self, file: str, content: bytes) -> None:
        """Note that the content runs. Raises: AceError(UNTRUSTED) if the user does not trust it."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = os.path.realpath(file)
        if content.strip() and self._is_trusted is not None and not self._is_trusted(sha256):
            code = CodeToRun(Path(path), sha256, (f"{Path(path).name}, which is imported while the model runs",))
            self.refused[path] = code
            require_trust([code], lambda _: False)
        self.ran[path] = sha256

    def read(self, file: str) -> bytes:
        """The content of a file of code, which runs. Raises: OSError; AceError as `check`."""
        content = Path(file).read_bytes()
        self.check(file, content)
        return content

    def archive(self, file: str) -> ZipFile:
        """A zip archive of code, as it was when the present job first read it. Raises: as `read`; BadZipFile."""
        path = os.path.realpath(file)
        if path not in self._archives:
            self._archives[path] = ZipFile(io.BytesIO(self.read(path)))
        return self._archives[path]

    def raise_refused(self) -> None:
        """Raises: AceError(UNTRUSTED) if code was refused, whatever became of the exception in the user's code."""
        require_trust(self.refused.values(), lambda _: False)


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
    zipimport._get_module_code = _gated_archive  # type: ignore[attr-defined]
    io.open_code = _gated_script


def _environment_folders() -> tuple[str, ...]:
    """The standard library, installed packages, ACE Studio, and what is on ``sys.path`` without the present folder."""
    libraries = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    at_start = [entry for entry in sys.path if entry and Path(entry).resolve() != Path.cwd()]
    return _folders((*libraries, *site.getsitepackages(), site.getusersitepackages(), *at_start, str(PACKAGE)))


def _folders(paths: Iterable[str | Path]) -> tuple[str, ...]:
    both = ((os.path.realpath(path), os.path.abspath(path)) for path in paths)  # noqa: PTH100 - with its links
    return tuple(dict.fromkeys(f"{folder}{os.sep}" for pair in both for folder in pair))


def _deepest(path: str, folders: Iterable[str]) -> int:
    """Length of the longest of these folders that contains the path; 0 if none does."""
    return max((len(folder) for folder in folders if path.startswith(folder)), default=0)


_plain_source = machinery.SourceFileLoader.get_code
_plain_bytecode = machinery.SourcelessFileLoader.get_code
_plain_extension = machinery.ExtensionFileLoader.create_module
_plain_archive: Callable[[zipimport.zipimporter, str], tuple[CodeType, bool, str]] = zipimport._get_module_code  # type: ignore[attr-defined]
_plain_script = io.open_code


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
    return _from_bytecode(content, path, fullname)


def _from_bytecode(content: bytes, path: str, fullname: str) -> CodeType:
    if content[:4] != util.MAGIC_NUMBER:
        raise ImportError(f"{path} is bytecode of another Python", name=fullname, path=path)
    code: CodeType = marshal.loads(content[_BYTECODE_HEADER:])
    return code


def _gated_archive(self: zipimport.zipimporter, fullname: str) -> tuple[CodeType, bool, str]:
    """Code of a module in a zip archive, whether it is a package, and its path."""
    if not GATE.is_gated(os.path.join(self.archive, fullname)):  # noqa: PTH118 - as the archive's own modules are named
        return _plain_archive(self, fullname)
    try:
        archive = GATE.archive(self.archive)
    except (OSError, BadZipFile) as error:
        raise ImportError(str(error), name=fullname, path=self.archive) from error
    base = f"{self.prefix}{fullname.rpartition('.')[2]}".replace(os.sep, "/")
    for ending, is_package in _IN_ARCHIVE:
        if (base + ending) in archive.NameToInfo:
            content, path = archive.read(base + ending), f"{self.archive}{os.sep}{base}{ending}"
            is_source = ending.endswith(".py")
            code = compile(content, path, "exec", dont_inherit=True) if is_source else None
            return code or _from_bytecode(content, path, fullname), is_package, path
    raise ImportError(f"{self.archive} has no module {fullname}", name=fullname, path=self.archive)


def _gated_script(path: str) -> IO[bytes]:
    """A file that a part of Python opens in order to run it: ``runpy.run_path``, ``.pth`` files of `site`, tracers."""
    return io.BytesIO(GATE.read(path)) if GATE.is_gated(path) else _plain_script(path)


def _gated_extension(self: machinery.ExtensionFileLoader, spec: Any) -> ModuleType:
    """Compiled modules, but for those that torch's compilers have just built in folders of their own."""
    path = os.path.realpath(self.path)
    built = _folders(os.environ.get(name) or Path(default).expanduser() for name, default in _COMPILERS)
    if not GATE.is_gated(path) or _deepest(path, built) > _deepest(path, GATE.folders):
        return _plain_extension(self, spec)
    content = Path(path).read_bytes()
    GATE.check(path, content)
    return _extension_of(content, self, spec)


def _extension_of(content: bytes, loader: machinery.ExtensionFileLoader, spec: Any) -> ModuleType:
    """A compiled module from a private copy of the checked bytes: the system's loader takes only names.

    The copy lies in a folder of its content's name, because the loader knows files by their names too. A library that
    the module links to beside itself is not found: it would be opened by name, without a question.
    """
    sha256 = hashlib.sha256(content).hexdigest()
    copy = private_folder(Path(tempfile.gettempdir(), "ace-modules", sha256)) / Path(spec.origin).name
    write_atomically(copy, content, mode=0o600, sync=False)
    module = _plain_extension(loader, machinery.ModuleSpec(spec.name, loader, origin=str(copy)))
    module.__file__ = spec.origin
    return module


def hashes_of(files: Iterable[Path]) -> dict[str, str]:
    """Path -> SHA-256 of files of code, for a process without the gate."""
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}
