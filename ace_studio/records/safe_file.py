"""Atomic writes: after a crash, a full disk or a power cut a file has either the old content or the new one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex. Raises: OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_atomically(path: Path, content: bytes, *, keep_backup: bool = False, mode: int | None = None) -> None:
    """Replace the file's content atomically: temporary file beside it, write, fsync, rename, fsync the folder.

    With ``keep_backup`` the old content is kept as ``NAME.bak`` (one generation); saving equal content changes nothing,
    so the backup stays the last different version. Links are followed, and the permissions of the old file are kept
    unless ``mode`` sets others.

    Raises: OSError; then ``path`` still has its old content.
    """
    target = path.resolve()
    old = target.read_bytes() if target.is_file() else None
    if old == content:
        return
    if mode is None:
        mode = stat.S_IMODE(target.stat().st_mode) if old is not None else 0o666 & ~_umask()
    if keep_backup and old is not None:
        _replace(target.with_name(target.name + ".bak"), old, mode=mode)
    _replace(target, content, mode=mode)


def _replace(target: Path, content: bytes, *, mode: int) -> None:
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        try:
            _write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.chmod(mode)
        os.replace(temporary, target)  # noqa: PTH105 - one call that the tests can make fail
    except BaseException:  # also Ctrl-C; it is raised again
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _write_all(descriptor: int, content: bytes) -> None:
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
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def make_output_folder(folder: Path) -> None:
    """Make a folder for results, with its parents, and make sure that files can be written into it.

    Raises: AceError(USAGE) with the system's reason.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise AceError.of(
            ErrorCode.USAGE,
            f"Results cannot be written to {folder}",
            why=error.strerror or str(error),
            remedy="Name a folder that you may write to.",
            where=str(folder),
        ) from error
