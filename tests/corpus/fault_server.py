"""Runs one command line after another in processes that are forked from this one, each in a machine with a fault.

This process is a fork of the fork server (`tests.forked_engines`). A command is a fork of this process, and its engine
one of the command, so that both are in the machine with the fault. `main` reads a case per line from stdin and answers
with a line; `tests.corpus.faults` has the cases.
"""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from ace_studio import __main__ as program
from ace_studio.cli.app import Console, report_failure
from ace_studio.jobs import launch
from ace_studio.records.errors import AceError
from tests import forked_engines

LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_NAMESPACE, _NEW_USERS = 0x20000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_ADOPT = 36
"""prctl: processes whose parent died become children of this one."""
MOST_S = 400


class CannotInjectError(Exception):
    """This machine does not let the fault be made."""


def _mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
    words = [os.fsencode(one) for one in (source, str(target), kind)]
    if LIBC.mount(*words, flags, data.encode() or None) != 0:
        raise CannotInjectError(f"mount: {os.strerror(ctypes.get_errno())}")


def own_mounts() -> None:
    """Let this process mount what no other sees; as a user of its own name space if it is not root."""
    if LIBC.unshare(_NEW_NAMESPACE) != 0 and LIBC.unshare(_NEW_NAMESPACE | _NEW_USERS) != 0:
        raise CannotInjectError(f"unshare: {os.strerror(ctypes.get_errno())}")
    _mount("none", Path("/"), "none", _RECURSIVE | _PRIVATE)


def read_only(folder: Path) -> None:
    """Make a folder read-only, for root too."""
    folder.mkdir(parents=True, exist_ok=True)
    own_mounts()
    _mount(str(folder), folder, "none", _BIND)
    _mount("none", folder, "none", _BIND | _REMOUNT | _READ_ONLY)


def small_disk(folder: Path, *, kb: int, files: int = 0) -> None:
    """Put a disk of that size there."""
    folder.mkdir(parents=True, exist_ok=True)
    own_mounts()
    _mount("tmpfs", folder, "tmpfs", 0, f"size={kb}k,nr_inodes={files}")


def fill(folder: Path, *, leave_kb: int = 0) -> None:
    """Fill a disk."""
    (folder / "filling").write_bytes(bytes(max(0, shutil.disk_usage(folder).free - leave_kb * 1024)))


def limit(name: str, value: int, hard: int | None = None) -> None:
    """Set a limit of this process and its children, as ``ulimit`` does."""
    resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value if hard is None else hard))


def processes(count: int) -> None:
    """Limit the processes of this user, whom root's rights are taken from that would make an exception."""
    header, both = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    os.setresuid(65534, 0, 0)
    LIBC.capget(header, both)
    for at in (0, 1):  # effective and permitted, without CAP_SYS_ADMIN and CAP_SYS_RESOURCE
        both[at] &= ~(1 << 21 | 1 << 24)
    if LIBC.capset(header, both) != 0:
        raise CannotInjectError("capset")
    limit("NPROC", count)


def address_space(extra_mb: int) -> None:
    """Limit the address space to what is used now and so much more."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limit("AS", used + extra_mb * 1_000_000)


class Job:
    """What a case may ask and do while its command runs."""

    pid = 0
    """Process id of the engine, once there is one."""
    in_engine: Any = staticmethod(lambda: None)
    """Called in the engine's process before it starts."""

    def __init__(self) -> None:
        self._then: dict[str, Any] = {}

    def at(self, phase: str, action: Any) -> None:
        """Call ``action`` when a progress line that begins so is shown, once."""
        self._then[phase] = action

    def reached(self, text: str) -> None:
        for phase in [one for one in self._then if text.startswith(one)]:
            self._then.pop(phase)()

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def pause(self, seconds: float) -> None:
        """Stop the engine, and let it go on later."""
        self.kill(signal.SIGSTOP)
        threading.Timer(seconds, self.kill, (signal.SIGCONT,)).start()


JOB = Job()


def _fork_engine(*words: Any) -> subprocess.Popen[bytes]:
    """What `launch._popen` does, with a fork of this process as the interpreter."""
    process = forked_engines.fork_engine(*words, at_first=JOB.in_engine, forks_verifiers=True)
    JOB.pid = process.pid
    return process


def _show_progress(self: Console, event: Any, _show: Any = Console.show_progress) -> None:
    _show(self, event)
    JOB.reached(f"{event.phase}: {event.detail}")


def _serve(order: dict[str, Any]) -> NoReturn:
    """The forked process of a command: make the fault, run the command, end with its code."""
    os.setsid()
    here = Path(order["here"])
    how = {0: (os.devnull, os.O_RDONLY)} | {
        number: (here / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for number, name in ((1, "stdout"), (2, "stderr"))
    }
    forked_engines.prepare({number: os.open(*words) for number, words in how.items()})
    forked_engines.set_environment(order["environment"])
    os.chdir(here)
    launch._popen = _fork_engine
    Console.show_progress = _show_progress  # type: ignore[method-assign]
    names = {"here": here, "job": JOB, "words": order["words"]} | {one.__name__: one for one in _HELPERS}
    try:
        exec(textwrap.dedent(order["fault"]), names)
    except CannotInjectError as error:
        (here / "skip").write_text(str(error))
        os._exit(0)
    encoding, _, errors = order["environment"].get("PYTHONIOENCODING", "utf-8").partition(":")
    forked_engines.set_streams(encoding, errors or "strict")
    if order["fresh"]:
        words = [sys.executable, "-m", "ace_studio", *order["words"]]
        os.execve(sys.executable, words, {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    code = 1
    try:
        code = _run(order["words"])
    except BaseException:  # noqa: BLE001 - what the interpreter would do: print the traceback and end with 1
        sys.excepthook(*sys.exc_info())
    forked_engines.finish(code)


def _run(words: list[str]) -> int:
    """Run a command, or Python for what has none; an error of it ends as one of a command."""
    if words[0] != "python":
        sys.argv = ["ace-studio", *words]
        return program.main()
    try:
        exec(textwrap.dedent(words[1]), {"here": Path.cwd()})
    except AceError as error:
        return report_failure(error.problems, Console(as_json=False))
    return 0


_HELPERS = (
    os, sys, time, signal, shutil, tempfile, threading, subprocess, Path, read_only, small_disk, fill, limit, processes,
    address_space,
)  # fmt: skip


def _ended(pid: int, deadline: float) -> int | None:
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def _children() -> list[int]:
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only
        if name.isdigit():
            with suppress(OSError):
                state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
                if int(parent) == os.getpid() and state != "Z":
                    found.append(int(name))
    return found


def _left_over() -> int:
    """Processes that outlived the command by more than ten seconds; they are ended."""
    deadline, left = time.monotonic() + 10, set[int]()
    while True:
        try:
            # Not by their state: a process whose main thread ended, but not all others, keeps its children.
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return len(left)
        if time.monotonic() > deadline:
            for pid in _children():
                left.add(pid)
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def main() -> None:
    """Serve orders until stdin ends."""
    LIBC.prctl(_ADOPT, 1)
    for line in sys.stdin:
        order = json.loads(line)
        begin = time.monotonic()
        pids = []
        for words in order["commands"]:
            pid = os.fork()
            if pid == 0:
                _serve({**order, "words": words})
            pids.append(pid)
        codes = [_ended(pid, begin + MOST_S) for pid in pids]
        for pid, code in zip(pids, codes, strict=True):
            if code is None:
                os.kill(pid, signal.SIGKILL)
        answer = {"codes": codes, "orphans": _left_over(), "seconds": time.monotonic() - begin}
        print(json.dumps(answer))
