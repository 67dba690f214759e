"""Calls a function in a new process and waits for its end."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ace_studio.engine.fresh.python import fresh_python

CAN_FORK = sys.platform == "linux"
"""macOS can fork too, but its own libraries may not be used afterwards."""
_POLL_S = 0.05
OF_ONE_PROCESS = {"_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"}
"""Variables that do not matter to a new process: torch's compiler sets this one anew to an address in each."""


def run_fresh(
    module: str,
    function: str,
    *arguments: str,
    log: Path,
    check: Callable[[], object],
    forked: bool = True,
    imports: Sequence[str] = (),
) -> None:
    """Call ``function(*arguments)`` of a module of this package in a new process, and wait for the end of it.

    Args:
        module: Full name of the module.
        function: Its name there; takes strings, returns an exit status.
        arguments: What it is called with.
        log: File that gets what the process prints.
        check: Called while it runs; what it raises kills the process and is raised.
        forked: May be forked from a process that has imported the module, which takes hundredths of a second instead
            of seconds. False for a process that uses a GPU: CUDA does not survive a fork.
        imports: Modules that a forked process finds imported.
    """
    order = {"arguments": arguments, "log": str(log.resolve()), "imports": tuple(imports)}
    if not (forked and CAN_FORK and _run_forked(module, function, order, check=check)):
        _run_started(fresh_python(module, function, *arguments), log=log, check=check)


class Preparation:
    """A process that is being made ready for `run_fresh` to fork from it, which takes seconds of processor time."""

    def __init__(self, module: str, function: str, imports: Sequence[str] = ()) -> None:
        """Start it; the arguments are as those of `run_fresh`."""
        order = json.dumps({"imports": tuple(imports)}).encode()
        self._unready = _SERVERS.fork(module, function, order) if CAN_FORK else None

    def wait(self, check: Callable[[], object]) -> None:
        """Wait until it has imported everything and disturbs no measurement. What ``check`` raises is raised."""
        if self._unready is not None:
            _wait(self._unready, check)
            self.close()

    def close(self) -> None:
        """Do not wait for it any more."""
        if self._unready is not None:
            os.close(self._unready)
            self._unready = None


def _run_started(command: list[str], *, log: Path, check: Callable[[], object]) -> None:
    with log.open("w", encoding="utf-8") as written:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT)
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                child.wait(_POLL_S)
                return
            check()
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def _run_forked(module: str, function: str, order: Mapping[str, object], *, check: Callable[[], object]) -> bool:
    """Whether a process could be forked; then it has ended."""
    try:
        folder = os.getcwd()  # noqa: PTH109
    except FileNotFoundError:  # somebody removed it; only a process that is started can be in it
        return False
    message = json.dumps({**order, "folder": folder}).encode()
    for _ in range(2):  # the server may have left just now, because nobody needed it for long
        alive = _SERVERS.fork(module, function, message)
        if alive is None:
            return False
        with open(alive, "rb", buffering=0) as stream:  # noqa: PTH123 - a descriptor
            if _wait(stream.fileno(), check):
                return True
    return False


def _wait(alive: int, check: Callable[[], object]) -> bool:
    """Wait until the forked process has ended; False if there never was one."""
    pid = b""
    try:
        while True:
            if select.select([alive], [], [], _POLL_S)[0]:
                read = os.read(alive, 64)
                pid += read
                if not read:
                    return bool(pid)
            check()
    except BaseException:  # also Ctrl-C, and what `check` raises; it is raised again
        if pid:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        raise


class _Servers:
    """The server of each function, started when it is needed first, and anew where the environment has changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, str], _Server] = {}
        atexit.register(self.end)

    def fork(self, module: str, function: str, order: bytes) -> int | None:
        """Descriptor whose stream holds the number of the forked process and ends with it; None without a server."""
        with self._lock:
            for _ in range(2):
                server = self._running.get((module, function))
                if server is None or server.environment != _environment():
                    self._end(module, function)
                    server = self._running[module, function] = _Server(module, function)
                with suppress(OSError):
                    return server.give(order)
                self._end(module, function)
        return None

    def _end(self, module: str, function: str) -> None:
        server = self._running.pop((module, function), None)
        if server is not None:
            server.end()

    def end(self) -> None:
        """End all of them."""
        with self._lock:
            for one in list(self._running):
                self._end(*one)


def _environment() -> dict[str, str]:
    """The environment that a new process is given."""
    return {name: value for name, value in os.environ.items() if name not in OF_ONE_PROCESS}


class _Server:
    """A process that has imported the module, and the socket that orders are sent by."""

    def __init__(self, module: str, function: str) -> None:
        self.environment = _environment()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = fresh_python("ace_studio.engine.fresh.server", "serve", str(theirs.fileno()), module, function)
        nothing = subprocess.DEVNULL  # a server that does not start is replaced by a process whose log says why
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=nothing, stdout=nothing, stderr=nothing, pass_fds=[theirs.fileno()], env=self.environment
            )

    def give(self, order: bytes) -> int:
        """Send an order. Returns: as `_Servers.fork`. Raises: OSError if the process is gone."""
        reading, writing = os.pipe()
        try:
            socket.send_fds(self._orders, [order], [writing])
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return reading

    def end(self) -> None:
        """End the process; what it has forked goes on."""
        self._orders.close()
        self._process.kill()
        self._process.wait()


_SERVERS = _Servers()
