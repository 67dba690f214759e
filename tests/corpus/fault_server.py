"""Runs one command line after another in processes that are forked from this one, each in a machine with a fault.

Importing torch is what a command costs, so it is imported here, once. A command and its engine process are forks of
this process; all else (channel, guard, limits, how both end) is the real thing. ``python -m tests.corpus.fault_server``
reads a case per line from stdin and answers with a line; `tests.corpus.faults` has the cases.
"""

import ctypes
import importlib
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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ace_studio import __main__ as program
from ace_studio.cli.app import report_failure
from ace_studio.cli.console import Console
from ace_studio.jobs import boot, launch
from ace_studio.jobs.processes import MARK_VARIABLE
from ace_studio.records.errors import AceError

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_NAMESPACE, _NEW_USERS = 0x20000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_ADOPT = 36
"""prctl: processes whose parent died become children of this one."""
MOST_S = 400


class CannotInjectError(Exception):
    """This machine does not let the fault be made."""


def _mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
    words = [os.fsencode(one) for one in (source, str(target), kind)]
    if _LIBC.mount(*words, flags, data.encode() or None) != 0:
        raise CannotInjectError(f"mount: {os.strerror(ctypes.get_errno())}")


def own_mounts() -> None:
    """Let this process mount what no other sees; as a user of its own name space if it is not root."""
    if _LIBC.unshare(_NEW_NAMESPACE) != 0 and _LIBC.unshare(_NEW_NAMESPACE | _NEW_USERS) != 0:
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
    _LIBC.capget(header, both)
    for at in (0, 1):  # effective and permitted, without CAP_SYS_ADMIN and CAP_SYS_RESOURCE
        both[at] &= ~(1 << 21 | 1 << 24)
    if _LIBC.capset(header, both) != 0:
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


def _forked(
    options: launch.LaunchOptions, config: Mapping[str, Any], inherited: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    """What `launch._popen` does, with a fork of this process as the interpreter."""
    out, err = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out[1], err[1])):
            os.dup2(descriptor, number)
        _keep_open(inherited)
        os.environ.clear()
        os.environ.update({**options.environment, boot.CONFIG_VARIABLE: json.dumps(config)})
        os.environ[MARK_VARIABLE] = str(config["mark"])
        tempfile.tempdir = None
        sys.stdout, sys.stderr = (
            open(number, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
            for number in (1, 2)
        )
        JOB.in_engine()
        boot.run_and_exit()
    JOB.pid = pid
    os.close(out[1])
    os.close(err[1])
    process = subprocess.Popen.__new__(subprocess.Popen)
    process.__dict__.update(
        pid=pid, returncode=None, args=["forked"], stdin=None, stdout=os.fdopen(out[0], "rb"),
        stderr=os.fdopen(err[0], "rb"), _child_created=True, _waitpid_lock=threading.Lock(),
        _communication_started=False,
    )  # fmt: skip
    return process


def _keep_open(kept: tuple[int, ...]) -> None:
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - names only
        if number > 2 and number not in kept:
            with suppress(OSError):
                os.close(number)


def _show_progress(self: Console, event: Any, _show: Any = Console.show_progress) -> None:
    _show(self, event)
    JOB.reached(f"{event.phase}: {event.detail}")


def _serve(order: dict[str, Any]) -> None:
    """The forked process of a command: make the fault, run the command, end with its code."""
    here = Path(order["here"])
    for number, name in ((0, os.devnull), (1, here / "stdout"), (2, here / "stderr")):
        os.dup2(os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(order["environment"])
    tempfile.tempdir = None
    os.chdir(here)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    launch._popen = _forked
    boot._make_importable = lambda: None
    Console.show_progress = _show_progress  # type: ignore[method-assign]
    if not order["verify"]:
        saving = importlib.import_module("ace_studio.engine.pipeline.compress.saving")
        saving.export.verify_artifact = lambda *_, **__: None
    names = {"here": here, "job": JOB, "words": order["words"]} | {one.__name__: one for one in _HELPERS}
    try:
        exec(textwrap.dedent(order["fault"]), names)
    except CannotInjectError as error:
        (here / "skip").write_text(str(error))
        os._exit(0)
    encoding, _, errors = order["environment"].get("PYTHONIOENCODING", "utf-8").partition(":")
    if sys.stdout is not None:
        sys.stdout = open(1, "w", encoding=encoding, errors=errors or "strict", closefd=False)  # noqa: SIM115
    if sys.stderr is not None:
        sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)  # noqa: SIM115
    if order["fresh"]:
        words = [sys.executable, "-m", "ace_studio", *order["words"]]
        os.execve(sys.executable, words, {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    code = 99
    try:
        code = _run(order["words"])
    except BaseException:  # noqa: BLE001 - what the interpreter would do: print the traceback and end with 1
        sys.excepthook(*sys.exc_info())
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()  # type: ignore[union-attr]
        except OSError:
            code = 120  # as Python ends then
    os._exit(code & 255)


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
    importlib.import_module("ace_studio.engine.pipeline")
    _LIBC.prctl(_ADOPT, 1)
    answers = os.dup(1)
    for line in sys.stdin:
        order = json.loads(line)
        begin = time.monotonic()
        pids = []
        for words in order["commands"]:
            pid = os.fork()
            if pid == 0:
                os.close(answers)
                os.setsid()
                _serve({**order, "words": words})
            pids.append(pid)
        codes = [_ended(pid, begin + MOST_S) for pid in pids]
        for pid, code in zip(pids, codes, strict=True):
            if code is None:
                os.kill(pid, signal.SIGKILL)
        answer = {"codes": codes, "orphans": _left_over(), "seconds": time.monotonic() - begin}
        os.write(answers, (json.dumps(answer) + "\n").encode())


if __name__ == "__main__":
    main()
