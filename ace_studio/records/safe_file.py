"""Atomic writes: after a crash, a full disk or a power cut a file has either the old content or the new one.

A folder for results may be one that anybody made: what is written replaces a link and never goes through it. And reads
of files that anything may have been put in the place of.
"""

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
from ace_studio.records.private_folder import make_private
from ace_studio.records.roots import steady_folder


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex. Raises: OSError."""
    with path.open("rb") as stream:
        return stream_sha256(stream)


def stream_sha256(stream: IO[bytes]) -> str:
    """SHA-256 of what is left of an open file, in hex. Raises: OSError."""
    return hashlib.file_digest(cast("io.BufferedReader", stream), "sha256").hexdigest()


LARGEST_KEPT_BYTES = 256_000_000
"""No file that ACE Studio keeps for itself comes near; a result with the profile of 10,000 ops has 20 MB."""
KeptT = TypeVar("KeptT")
_UMASK_LOCK = threading.Lock()
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def read_plain(path: Path, *, most: int = LARGEST_KEPT_BYTES) -> bytes:
    """The content of a regular file. Raises: OSError, as `open_plain` and also for more than ``most`` bytes."""
    with open_plain(path) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return content


def open_plain(path: Path, *, more_flags: int = 0) -> io.BufferedReader:
    """A regular file, opened to be read. Raises: OSError, also for a pipe, a device and a folder.

    Opening a pipe would wait for a writer, and a device may have no end.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    stream = open(os.open(path, flags | more_flags), "rb")  # noqa: PTH123, SIM115 - the caller closes it
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream
    stream.close()
    raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a regular file", str(path))


def leads_out(path: Path, folder: Path) -> bool:
    """Whether the path leads out of the folder, by a link or by its name."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def open_inside(path: Path, folder: Path) -> IO[bytes]:
    """A regular file of a folder that anybody may have made. Raises: OSError as `open_plain`; if it leads out of it."""
    stream = open_plain(path)
    with contextlib.suppress(FileNotFoundError):
        opened, place = os.fstat(stream.fileno()), Path(os.path.realpath(path))
        if not leads_out(place, folder) and os.path.samestat(opened, place.lstat()):  # nothing was swapped meanwhile
            return stream
    stream.close()
    raise OSError(errno.ELOOP, "it is a link that leads out of its folder", str(path))


def decode_plain(content: bytes, kind: type[KeptT]) -> KeptT:
    """Plain values of JSON as ``kind``. Raises: msgspec.DecodeError, also if they nest without end or are not UTF-8."""
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError as error:
        raise msgspec.DecodeError("it nests too deeply") from error
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("it is not UTF-8 text") from error


def read_or_none(path: Path, kind: type[KeptT]) -> KeptT | None:
    """A JSON file as ``kind``; None if there is none that can be read."""
    try:
        return decode_plain(read_plain(path), kind)
    except (OSError, msgspec.DecodeError):
        return None


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
) -> None:
    """Replace the file's content atomically: temporary file beside it, write, fsync, rename, fsync the folder.

    With ``keep_backup`` the old content is kept as ``NAME.bak`` (one generation); saving equal content changes nothing,
    so the backup stays the last different version. A link is replaced, and what it leads to stays as it is. The
    permissions of the old file are kept unless ``mode`` sets others. Without ``sync`` the file survives a crash of the
    process, not a power cut.

    Raises: OSError; then ``path`` still has its old content.
    """
    with steady_folder(path.parent) as folder:
        place = folder / path.name
        if place.exists() and not place.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))  # never rename over /dev/null
        old = None
        if not place.is_symlink():  # what a link leads to is not this file's content
            with contextlib.suppress(FileNotFoundError), open_plain(place, more_flags=_NO_FOLLOW) as stream:
                old = stream.read()
                mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode) if mode is None else mode
        if old == content:
            return
        if keep_backup and old is not None:
            with _replacing(place.with_name(place.name + ".bak"), mode=mode, sync=sync) as descriptor:
                _write_all(descriptor, old)
        with _replacing(place, mode=mode, sync=sync) as descriptor:
            _write_all(descriptor, content)


def write_private(path: Path, content: bytes, **options: Any) -> None:
    """As `write_atomically`, in a folder that is open to this user alone; it is made if it is missing.

    A link there is one of this user's, and is followed.
    """
    make_private(path.parent)
    write_atomically(path.resolve(), content, **options)


@contextlib.contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """A path in a new private folder beside ``target``, for a library that writes a file or a folder by its name.

    At the end what lies there gets its place: a file that of a file or of a link, the files of a folder those of the
    same names.

    Raises: OSError, also where a link is in the place of a folder; then ``target`` may have some of the files.
    """
    remove_leftovers(target)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=temporary_prefix(target), suffix=".tmp") as private:
        yield (written := Path(private, target.name))
        _give_place(written, target)


def _give_place(written: Path, place: Path) -> None:
    if not written.is_dir():
        if place.exists() and not place.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file", str(place))
        written.replace(place)
        return
    with steady_folder(place, make=True, below=place.parent) as folder:
        for one in sorted(written.iterdir()):
            _give_place(one, folder / one.name)


def link_or_copy(source: str | Path, destination: str | Path) -> None:
    """The file under another name too: a hard link costs no space; a copy where the disk has none. Raises: OSError."""
    Path(destination).unlink(missing_ok=True)
    try:
        os.link(source, destination)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, destination)


@contextlib.contextmanager
def native_stream(path: Path) -> Iterator[IO[bytes]]:
    """A file for torch's zip writer, which ends the whole process when a write fails: it never learns of that.

    Raises: OSError at the end, the first one that a write met; then ``path`` is what it was.
    """
    with _replacing(path) as descriptor:
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


def make_output_folder(folder: Path, *, below: Path | None = None) -> None:
    """Make a folder for results, with its parents, and make sure that files can be written into it.

    The user names folders, and they may be links. What a run makes ``below`` that folder may not.

    Raises: AceError(USAGE) with the system's reason.
    """
    what = f"Results cannot be written to {folder}"
    with (
        explained(ErrorCode.USAGE, what, remedy="Name a folder that you may write to.", where=folder),
        steady_folder(folder, make=True, below=below) as place,
        tempfile.TemporaryFile(dir=place),
    ):
        pass
