"""Folders, locks and copies that no other user of the machine can have made, nor change.

Standard library only and Python 3.8: a device gets this file together with ``measure_there.py``.
"""

from __future__ import annotations

import errno
import getpass
import hashlib
import os
import platform
import re
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Iterable, Mapping  # noqa: UP035 - as Python 3.8 has it

LIBRARY_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "compiled",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "PYTORCH_KERNEL_CACHE_PATH": "kernels",
    "CUDA_CACHE_PATH": "cuda",
    "NUMBA_CACHE_DIR": "numba",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}
"""Variables that name folders from which a library loads code that it compiled before -> a folder to use instead.

What none of them names is kept in the user's home; only torch keeps its own in the temporary folder. OpenVINO's cache
is off (``CACHE_DIR`` in its options).
"""
_PROBE_BYTES = 100_000
_APP_NAME = "ace-studio"


class NotPrivate(PermissionError):  # noqa: N818 - a refusal
    """A place is another user's, or may be; the text says why."""


def user_cache_folder() -> Path:
    """The user's cache folder. The engine's interpreter may lack platformdirs, which knows it."""
    return _user_folder("cache", "XDG_CACHE_HOME", ".cache")


def user_data_folder() -> Path:
    """The user's folder for data that no program may throw away."""
    return _user_folder("data", "XDG_DATA_HOME", ".local/share")


def timing_lock() -> Path:
    """What this user's measurements on this machine lock, one at a time; homes may be shared by machines."""
    return make_folder(_user_folder("state", "XDG_STATE_HOME", ".local/state")) / f"timing-{platform.node()}.lock"


def _user_folder(kind: str, variable: str, default: str) -> Path:
    try:
        import platformdirs  # noqa: PLC0415 - optional here
    except ImportError:
        return Path(os.environ.get(variable) or Path.home() / default) / _APP_NAME
    return Path(getattr(platformdirs, f"user_{kind}_path")(_APP_NAME, appauthor=False))


def make_folder(folder: Path) -> Path:
    """Make a folder and those above it that are missing, all for this user alone. Raises: OSError."""
    for place in (*reversed(folder.parents), folder):
        if not place.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)
    return folder


def make_private(folder: Path) -> None:
    """Make a folder as `make_folder` does; one of this user's that is open to others is narrowed. Raises: OSError."""
    make_folder(folder)
    for own in (folder, folder.parent) if folder.parent.name == _APP_NAME else (folder,):
        status = own.stat()
        if os.name == "posix" and status.st_uid == os.getuid() and status.st_mode & 0o077:
            own.chmod(0o700)


def private_folder(folder: Path) -> Path:
    """Make a folder that only this user may enter, or take one that is there and was this user's from the beginning.

    Raises: NotPrivate if it is a link, or another user made it, may write into it or may replace it; OSError.
    """
    if not fault_of(folder):  # nothing is made in a folder of others
        make_folder(folder)
    fault = "it is a link" if folder.is_symlink() else fault_of(folder)
    if fault:
        raise NotPrivate(errno.EPERM, fault, str(folder))
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def temporary_base(named: str = "") -> Path:
    """Where temporary folders are made: the folder that is named, or the system's, or else one in the user's cache.

    Raises: OSError if other users could replace what is in any of them.
    """
    base = Path(named)
    if not base.is_absolute() or not base.is_dir():
        base = Path(tempfile.gettempdir())
    return base if not fault_of(base / "new") else private_folder(user_cache_folder() / "tmp")


def use_private_caches() -> None:
    """Let libraries in this process keep compiled code in `library_caches`. Raises: OSError."""
    shared, instead = Path(tempfile.gettempdir()), user_cache_folder() / "libraries"
    os.environ.update(library_caches(os.environ, shared=shared, instead=instead))


def library_caches(environment: Mapping[str, str], *, shared: Path, instead: Path) -> dict[str, str]:
    """The folders of `LIBRARY_CACHES` that are named, and torch's: each as it is, if it is this user's own.

    A library loads what lies there without any question. Compiled code that libraries keep in the temporary folder on
    purpose stays where it was.

    Args:
        environment: Variables of the process.
        shared: The temporary folder in which torch keeps compiled code.
        instead: A private folder for what cannot be written, or may be another user's.
    """
    named = {name: environment[name] for name in LIBRARY_CACHES if environment.get(name)}
    named.setdefault("TORCHINDUCTOR_CACHE_DIR", compiled_code_folder(shared))
    named.setdefault("TRITON_CACHE_DIR", str(Path(named["TORCHINDUCTOR_CACHE_DIR"]) / "triton"))
    return {
        name: place if _takes_files(Path(place)) else str(private_folder(instead / LIBRARY_CACHES[name]))
        for name, place in named.items()
    }


def _takes_files(folder: Path) -> bool:
    """Whether the folder is private and can be written. Torch says of a cache where it cannot: there is no graph."""
    try:
        with tempfile.TemporaryFile(dir=private_folder(folder), buffering=0) as probe:
            return probe.write(bytes(_PROBE_BYTES)) == _PROBE_BYTES
    except OSError:
        return False


def compiled_code_folder(base: Path) -> str:
    """Where torch keeps compiled code, named as it does by default."""
    return str(base / ("torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user_name())))


def user_name() -> str:
    """The name of this user, or its number."""
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):
        return f"uid_{os.getuid()}" if hasattr(os, "getuid") else "unknown_user"


def fault_of(path: Path, *, owners: Iterable[int] = ()) -> str:
    """Why another user could change what is at a path, or put something else there; empty if nobody could.

    Root and the ``owners`` do not count as others. What is not there yet has no fault of its own. Where the sticky bit
    is set, as on ``/tmp``, an entry can only be replaced by its owner. Windows protects a user's folders by itself.
    """
    if os.name != "posix":
        return ""
    ours = {*_root_and_user(), *owners}
    ends = Path(os.path.abspath(path)), Path(os.path.realpath(path))  # noqa: PTH100 - links on the way count too
    for place in dict.fromkeys(each for end in ends for each in (end, *end.parents)):
        try:
            status = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return str(error)
        if status.st_uid not in ours:
            return f"{place} belongs to another user (number {status.st_uid})"
        is_guarded = place not in ends and status.st_mode & stat.S_ISVTX
        if not stat.S_ISLNK(status.st_mode) and not is_guarded and _others_may_write(status):
            return f"other users may write to {place}"
    return ""


def _root_and_user() -> set[int]:
    """Numbers of root and of this user. In a user namespace root may look like the user who stands for unknown ones."""
    ours = {0, os.getuid()}
    with suppress(OSError, ValueError):
        if Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
            ours.add(int(Path("/proc/sys/kernel/overflowuid").read_text()))
    return ours


def _others_may_write(status: os.stat_result) -> bool:
    """Whether the permissions let others write. A user's own group, which many systems make, holds no others."""
    if status.st_mode & stat.S_IWOTH or not status.st_mode & stat.S_IWGRP:
        return bool(status.st_mode & stat.S_IWOTH)
    import grp  # noqa: PLC0415 - not on Windows
    import pwd  # noqa: PLC0415 - as above

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(status.st_gid)
    except KeyError:
        return status.st_gid != 0
    return status.st_gid != 0 and (group.gr_name != user.pw_name or not {user.pw_name}.issuperset(group.gr_mem))


def open_lock(path: Path) -> int:
    """A descriptor of a file to lock, in a folder of this user's own. Raises: NotPrivate; OSError, also for a link."""
    private_folder(path.parent)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    return os.open(str(path), flags, 0o600)


def copy_if_same(source: Path, place: Path, sha256: str) -> bool:
    """Copy a file that was checked before into a private folder. Returns: whether it still has that content."""
    digest = hashlib.sha256()
    reading = os.open(str(source), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(reading, "rb") as stream, place.open("wb") as copy:
        for part in iter(lambda: stream.read(1 << 20), b""):
            digest.update(part)
            copy.write(part)
    return digest.hexdigest() == sha256
