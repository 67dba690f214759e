"""Atomic writes: after a crash, a full disk or a power cut a file has either the old content or the new one.

And reads of files that anything may have been put in the place of.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import io
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import msgspec

from ace_studio.records.errors import ErrorCode, explained
from ace_studio.records.private_folder import make_folder


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex. Raises: OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


LARGEST_KEPT_BYTES = 256_000_000
"""No file that ACE Studio keeps for itself comes near; a result with the profile of 10,000 ops has 20 MB."""
KeptT = TypeVar("KeptT")
_UMASK_LOCK = threading.Lock()


def read_plain(path: Path, *, most: int = LARGEST_KEPT_BYTES) -> bytes:
    """The content of a regular file. Raises: OSError, as `open_plain` and also for more than ``most`` bytes."""
    with open_plain(path) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return content


def open_plain(path: Path) -> IO[bytes]:
    """A regular file, opened to be read. Raises: OSError, also for a pipe, a device and a folder.

    Opening a pipe would wait for a writer, and a device may have no end.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    stream = os.fdopen(os.open(path, flags), "rb")
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream
    stream.close()
    raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a regular file", str(path))


def decode_plain(content: bytes, kind: type[KeptT]) -> KeptT:
    """Plain values of JSON as ``kind``. Raises: msgspec.DecodeError, also if they nest without end or are not UTF-8."""
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError as error:
        raise msgspec.DecodeError("it nests too deeply") from error
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("it is not UTF-8 text") from error


def read_or_before(path: Path, kind: type[KeptT]) -> tuple[KeptT | None, str]:
    """A JSON file as ``kind``, and what is wrong with it; if something is, ``NAME.bak`` counts. None: there is neither.

    A file that was removed counts as removed: `write_atomically` never leaves a moment without it.
    """
    fault = ""
    for one in (path, path.with_name(path.name + ".bak")):
        try:
            return decode_plain(read_plain(one), kind), fault
        except FileNotFoundError:
            break
        except (OSError, msgspec.DecodeError) as error:
            fault = fault or str(error)
    return None, fault


def write_atomically(
    path: Path,
    content: bytes,
    *,
    keep_backup: bool = False,
    mode: int | None = None,
    sync: bool = True,
    makes_folder: bool = False,
) -> None:
    """Replace the file's content atomically: temporary file beside it, write, fsync, rename, fsync the folder.

    With ``keep_backup`` the old content is kept as ``NAME.bak`` (one generation); saving equal content changes nothing,
    so the backup stays the last different version. Links are followed, and the permissions of the old file are kept
    unless ``mode`` sets others. Without ``sync`` the file survives a crash of the process, not a power cut. With
    ``makes_folder`` a folder that is missing is made, for this user alone.

    Raises: OSError; then ``path`` still has its old content.
    """
    target = path.resolve()
    if makes_folder:
        make_folder(target.parent)
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file", str(target))  # never rename over /dev/null
    old = target.read_bytes() if target.is_file() else None
    if old == content:
        return
    if mode is None:
        mode = stat.S_IMODE(target.stat().st_mode) if old is not None else None
    if keep_backup and old is not None:
        with _replacing(target.with_name(target.name + ".bak"), mode=mode, sync=sync) as descriptor:
            _write_all(descriptor, old)
    with _replacing(target, mode=mode, sync=sync) as descriptor:
        _write_all(descriptor, content)


@contextlib.contextmanager
def native_stream(path: Path) -> Iterator[IO[bytes]]:
    """A file for torch's zip writer, which ends the whole process when a write fails: it never learns of that.

    Raises: OSError at the end, the first one that a write met; then ``path`` is what it was.
    """
    with _replacing(path.resolve()) as descriptor:
        stream = _Deaf(descriptor)
        yield cast("IO[bytes]", stream)
        if stream.error is not None:
            raise stream.error


class _Deaf(io.RawIOBase):
    """Takes everything, and remembers the first error."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self.error: OSError | None = None
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return os.lseek(self._descriptor, offset, whence)

    def write(self, content: Any, /) -> int:
        view = memoryview(content).cast("B")
        if self.error is None:
            try:
                _write_all(self._descriptor, view)
            except OSError as error:
                self.error = error
        return len(view)


@contextlib.contextmanager
def _replacing(target: Path, *, mode: int | None = None, sync: bool = True) -> Iterator[int]:
    """A descriptor of a temporary file beside ``target`` that replaces it at the end."""
    remove_leftovers(target)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=temporary_prefix(target), suffix=".tmp")
    temporary = Path(name)
    try:
        try:
            yield descriptor
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.chmod(0o666 & ~_umask() if mode is None else mode)
        os.replace(temporary, target)  # noqa: PTH105 - one call that the tests can make fail
    except BaseException:  # also Ctrl-C; it is raised again
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    if sync:
        _sync_folder(target.parent)


def temporary_prefix(target: Path) -> str:
    """How names of temporary files and folders beside a target begin; with ``.tmp`` `remove_leftovers` finds them."""
    return f".{target.name[:180]}.{os.getpid()}-"


def remove_leftovers(target: Path) -> None:
    """Remove temporary files and folders of this target whose process was killed. POSIX: elsewhere nobody can ask."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        for left in target.parent.glob(f".{glob.escape(target.name[:180])}.*-*.tmp"):
            pid = left.name.removesuffix(".tmp").rpartition(".")[2].partition("-")[0]
            if pid.isdigit() and not is_running(int(pid)):
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink(missing_ok=True)


def is_running(pid: int) -> bool:
    """Whether there is a process of this number. POSIX."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Write everything; one ``os.write`` may write only a part."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable. Windows has no descriptor for a folder and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    """The permission bits that new files do not get. They can only be read by setting them."""
    with _UMASK_LOCK:  # two threads at once would leave the one that is set here
        mask = os.umask(0o077)
        os.umask(mask)
    return mask


def make_output_folder(folder: Path) -> None:
    """Make a folder for results, with its parents, and make sure that files can be written into it.

    Raises: AceError(USAGE) with the system's reason.
    """
    what = f"Results cannot be written to {folder}"
    with explained(ErrorCode.USAGE, what, remedy="Name a folder that you may write to.", where=folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
