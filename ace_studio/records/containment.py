"""Containment of a process: it writes only below named folders and has no network. Linux; standard library only.

Landlock refuses the writes, TCP, signals to other processes and abstract sockets; a network namespace of its own, where
the system permits one, refuses the rest of the network. Both hold for all threads and children that start later, and
cannot be undone. Reads are free, and so are sockets that are files (a desktop's or Docker's, for example).
"""

import ctypes
import errno
import functools
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

VARIABLE = "ACE_STUDIO_CONTAINED"
"""Set in a contained process: its writable folders, joined like a PATH."""
_CREATE, _ADD_PATH, _RESTRICT = 444, 445, 446
_SET_NO_NEW_PRIVILEGES, _SET_DEATH_SIGNAL = 38, 1
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_WRITES = _WRITE_FILE | _TRUNCATE | sum(1 << bit for bit in range(4, 14))
"""All accesses of ABI 3 that change files or folders."""
_TCP, _ABSTRACT_SOCKETS_AND_SIGNALS = 0b11, 0b11
_OLDEST_ABI, _TCP_ABI, _SCOPE_ABI = 3, 4, 6
_DEVICES = ("dev/null", "dev/shm", "dev/nvidia*", "dev/dri/*", "dev/kfd")
_GONE = {errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL}


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("descriptor", ctypes.c_int32)]


@functools.cache
def available() -> tuple[bool, str]:
    """Whether processes can be contained here, and in one sentence how far, or why not."""
    if sys.platform != "linux":
        return False, f"containment needs Linux; this is {sys.platform}"
    abi = _landlock_abi()
    if abi < _OLDEST_ABI:
        return False, "the kernel has no Landlock, has it switched off, or is older than 6.2"
    with suppress(OSError):
        probe = ["unshare", "--user", "--net", "true"]
        if subprocess.run(probe, capture_output=True, check=False, timeout=10).returncode == 0:
            return True, f"writes by Landlock (ABI {abi}), no network by a network namespace of its own"
    if abi < _TCP_ABI:
        return False, "this kernel can refuse writes, but not the network: it needs 6.7, or unprivileged namespaces"
    return True, f"writes and TCP by Landlock (ABI {abi}); UDP and DNS stay open: no network namespace is permitted"


def from_elsewhere(source: Path) -> str:
    """Why a file or folder counts as a stranger's; empty if it does not (`DECISIONS` says why by these signs)."""
    place, home = source.resolve(), Path.home()
    folders = [home / "Downloads", home / ".cache/huggingface", home / ".cache/torch/hub"]
    with suppress(OSError):  # the folder of downloads has another name in other languages
        named = re.search(r'XDG_DOWNLOAD_DIR="\$HOME/(.+)"', (home / ".config/user-dirs.dirs").read_text())
        folders += [home / named[1]] if named else []
    if not place.exists():  # a model of an installed package
        return ""
    if any(place.is_relative_to(folder.resolve()) for folder in folders):
        return "it lies among downloads"
    with suppress(OSError, AttributeError):  # no such mark, or a system without marks
        if os.geteuid() not in (0, place.stat().st_uid) and place.stat().st_uid != 0:
            return "it belongs to another user"
        return "it was downloaded from " + os.getxattr(place, "user.xdg.origin.url").decode(errors="replace")
    return ""


def contain(writable: Sequence[str]) -> str:
    """Contain this process, before it has threads, and return how its network is refused.

    Raises: OSError if the kernel does not do it. Then nothing of a stranger's may run here.
    """
    abi = _landlock_abi()
    if abi < _OLDEST_ABI:
        raise OSError(errno.ENOSYS, available()[1])
    for folder in writable:
        Path(folder).mkdir(parents=True, exist_ok=True)
    has_namespace = _leave_network()
    if not has_namespace and abi < _TCP_ABI:
        raise OSError(errno.ENOSYS, "the network cannot be refused here")
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if abi >= _SCOPE_ABI else 0
    rules = _Ruleset(_WRITES, _TCP if abi >= _TCP_ABI else 0, scoped)
    size = 24 if scoped else 16 if rules.network else 8
    ruleset = _call(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    try:
        for path in (*map(Path, writable), *(path for name in _DEVICES for path in Path("/").glob(name))):
            _allow(ruleset, path)
        _check(_libc().prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    _check(_libc().prctl(_SET_DEATH_SIGNAL, signal.SIGKILL))  # a change of credentials clears it
    os.environ[VARIABLE] = os.pathsep.join(writable)
    return "no network" if has_namespace else "no TCP (UDP and DNS stay open: no network namespace is permitted here)"


def refusal(error: BaseException) -> tuple[str, str] | None:
    """Why and remedy, if containment of this process refused what the exception is about; else None."""
    folders = os.environ.get(VARIABLE)
    if not folders:
        return None
    tried = next((words for link in causes(error) if (words := _tried(link, folders.split(os.pathsep)))), "")
    if not tried:
        return None
    places = " and ".join(folders.split(os.pathsep))
    why = f"{tried}, and this job runs contained: no network, and writes only below {places}"
    remedy = "write to tempfile.gettempdir(); or, if you trust the code with all of it, run it with --no-contain "
    return why, remedy + "(in the window: Settings > Engine > Contain: never)"


def _tried(error: BaseException, folders: Sequence[str]) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return "a program that the code started failed"
    if isinstance(error, socket.gaierror) or (isinstance(error, OSError) and error.errno in _GONE):
        return "the code asked for the network"
    if not isinstance(error, PermissionError):
        return ""
    if not error.filename:
        return "the code asked for the network" if error.errno == errno.EACCES else "the code signalled a process"
    path = Path(os.fsdecode(error.filename)).absolute()
    is_inside = any(path.is_relative_to(folder) for folder in folders)
    # access() knows nothing of Landlock: what it forbids is forbidden without containment too.
    may_write = os.access(path if path.exists() else path.parent, os.W_OK)
    return "" if is_inside or not may_write else f"the code would change {path}"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and what it was raised from or after, outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _allow(ruleset: int, path: Path) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        allowed = _WRITES if path.is_dir() else _WRITE_FILE | _TRUNCATE
        _call(_ADD_PATH, ruleset, 1, ctypes.byref(_PathRule(allowed, descriptor)), 0)
    finally:
        os.close(descriptor)


def _leave_network() -> bool:
    """Move to an empty network namespace, keeping user and group; whether the system permits that."""
    user, group = os.geteuid(), os.getegid()
    if _libc().unshare(_NEW_USER | _NEW_NETWORK) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text)
    # The new user namespace gave all its capabilities; nothing here needs them.
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _check(_libc().capset(header, nothing))
    return True


def _landlock_abi() -> int:
    return int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), 1)) if sys.platform == "linux" else -1


def _call(number: int, *arguments: object) -> int:
    return _check(_libc().syscall(number, *arguments))


def _check(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
