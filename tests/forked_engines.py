"""Engines and commands that are forked from one process that has imported torch and run a job: the fork server.

Importing torch takes seconds, and so does the first job of a process. Tests that are about neither let the fork server
make their engines; the channel, the guard, the limits and the ways to end are those of an engine that is started.
``python -m tests.forked_engines ADDRESS`` listens on a Unix socket until its stdin is closed. An order is one message:
JSON, with the descriptors that the new process gets. The answer is the number of that process, which is a child of the
process that started the server. Linux only; elsewhere, engines and commands are started.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from ace_studio.jobs import boot, launch
from ace_studio.jobs.answer import HANDLERS_VARIABLE
from ace_studio.jobs.processes import MARK_VARIABLE

CAN_FORK = sys.platform == "linux"
ROOT = Path(__file__).resolve().parents[1]
ORDER_BYTES, MOST_DESCRIPTORS = 131_072, 16
LIBC = ctypes.CDLL(None, use_errno=True) if CAN_FORK else None
ADOPT = 36
"""prctl: processes below this one whose parent died become children of it."""
Descriptors = Mapping[int, int]
"""Numbers in the new process -> numbers here. The new process has no others."""
_address = ""
"""The socket of the server, in the server and in what is forked from it."""


# --- who gives orders ---


class ForkServer:
    """The server, seen from the process that starts it and gives orders."""

    def __init__(self) -> None:
        """Store its address; nothing is started yet."""
        self._folder = tempfile.TemporaryDirectory(prefix="ace-fork-")
        self._address = str(Path(self._folder.name, "orders"))
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it is ready; where it runs, do nothing."""
        if self._process is None and CAN_FORK:
            command = [sys.executable, "-X", "faulthandler", "-m", "tests.forked_engines", self._address]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._process = subprocess.Popen(command, cwd=ROOT, **pipes)
            assert self._process.stdout is not None
            assert self._process.stdout.readline() == b"ready\n"

    def fork(self, call: str, *arguments: object, descriptors: Descriptors, **how: object) -> int:
        """Call a function in a process that is forked from the server, and return its number: a child of this one.

        Args:
            call: ``module:function``; what it returns is the exit status.
            arguments: What it is called with; they travel as JSON.
            descriptors: What the process has open.
            how: ``environment`` of the process, and ``folder``, where it begins.
        """
        with self._lock:
            assert LIBC is not None
            LIBC.prctl(ADOPT, 1)
            try:
                return _give(self._address, {"call": call, "arguments": arguments, **how}, descriptors)
            finally:
                LIBC.prctl(ADOPT, 0)

    def popen(
        self, options: launch.LaunchOptions, config: Mapping[str, Any], inherited: tuple[int, ...]
    ) -> subprocess.Popen[bytes]:
        """What `launch._popen` does, with a fork of the server as the interpreter; others are started."""
        is_other = options.interpreter != sys.executable or HANDLERS_VARIABLE in options.environment
        if is_other or not CAN_FORK or os.getpid() != self._owner:
            return _start_engine(options, config, inherited)

        def fork(descriptors: Descriptors) -> int:
            words = dict(options.environment), dict(config)
            return self.fork("tests.forked_engines:become_engine", *words, descriptors=descriptors)

        return _with_pipes(fork, inherited)

    def run(self, words: Sequence[object], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """What ``python -m ace_studio WORDS`` prints in a folder, and its exit code."""
        variables = {**os.environ, **environment}
        if not CAN_FORK:
            command = [sys.executable, "-m", "ace_studio", *map(str, words)]
            return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)

        def fork(descriptors: Descriptors) -> int:
            how = {"environment": variables, "folder": str(folder)}
            return self.fork("tests.forked_engines:run_command", *map(str, words), descriptors=descriptors, **how)

        process = _with_pipes(fork, ())
        out, errors = process.communicate()
        return subprocess.CompletedProcess(list(words), process.returncode, out.decode(), errors.decode())

    def close(self) -> None:
        """End the server; what it has forked goes on."""
        if self._process is not None:
            self._process.communicate()
        self._folder.cleanup()


_start_engine = launch._popen


def _give(address: str, order: Mapping[str, object], descriptors: Descriptors) -> int:
    """Send an order. Raises: OSError if the server is gone, or could not fork."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as orders:
        orders.connect(address)
        message = json.dumps({**order, "numbers": list(descriptors)}).encode()
        socket.send_fds(orders, [message], list(descriptors.values()))
        if not (answer := orders.recv(64)):
            raise ConnectionError("the fork server forked nothing")
        return int(answer)


def _with_pipes(fork: Callable[[Descriptors], int], inherited: tuple[int, ...]) -> subprocess.Popen[bytes]:
    """A process with nothing to read and pipes for what it prints, as `subprocess.Popen` gives one."""
    (out, to_out), (errors, to_errors) = os.pipe(), os.pipe()
    streams = os.fdopen(out, "rb"), os.fdopen(errors, "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        pid = fork({0: nothing, 1: to_out, 2: to_errors} | {one: one for one in inherited})
    finally:
        for one in (nothing, to_out, to_errors):
            os.close(one)
    process = subprocess.Popen.__new__(subprocess.Popen)
    process.__dict__.update(
        pid=pid, returncode=None, args=["forked"], stdin=None, stdout=streams[0], stderr=streams[1], text_mode=False,
        _child_created=True, _waitpid_lock=threading.Lock(), _input=None, _communication_started=False,
    )  # fmt: skip
    return process


# --- the server ---


def main() -> None:
    """Serve orders until stdin ends."""
    global _address  # noqa: PLW0603 - of the process, and of all that are forked from it
    _address = sys.argv[1]
    _warm_up()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(_address)
        listener.listen(16)
        print("ready", flush=True)
        while 0 not in select.select([listener, 0], [], [])[0]:
            orders, _ = listener.accept()
            with orders:
                _serve(orders)


def _warm_up() -> None:
    """Run a job: most of the first one is imports and tables, which each engine would make again."""
    tqdm = importlib.import_module("tqdm").tqdm
    tqdm.monitor_interval = 0  # no thread
    tqdm.set_lock(threading.RLock())  # its own is shared with forked processes, one of which may die with it
    names = ("torch", "ace_studio", "ace_studio.engine.pipeline.compress.saving")
    torch, ace_studio, saving = map(importlib.import_module, names)
    for name in ("ace_studio.jobs.worker", "ace_studio.jobs.guard", "ace_studio.engine.verify_child"):
        importlib.import_module(name)
    with redirect_stdout(io.StringIO()):
        run_command("trust")
    verify, saving.export.verify_artifact = saving.export.verify_artifact, lambda *_, **__: None
    examples = [(torch.randn(size, 4),) for size in (2, 3)]
    with tempfile.TemporaryDirectory() as folder:
        made = ace_studio.compile(
            torch.nn.Linear(4, 4), tracing_inputs=examples, calibration_inputs=examples, default="int8-static",
            target="onnxruntime", rounds=2, output=folder,
        )  # fmt: skip
    del made
    saving.export.verify_artifact = verify
    importlib.import_module("ace_studio.engine.fresh.processes")._SERVERS.end()
    gc.collect()
    gc.freeze()
    threads = os.listdir("/proc/self/task")  # noqa: PTH208 - names only
    assert len(threads) == 1, "a thread does not survive a fork"


def _serve(orders: socket.socket) -> None:
    """Fork twice: when the process between has ended, the new one belongs to the process that adopts it."""
    message, descriptors, *_ = socket.recv_fds(orders, ORDER_BYTES, MOST_DESCRIPTORS)
    if between := os.fork():
        os.waitpid(between, 0)
        for one in descriptors:
            os.close(one)
        return
    between = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == between:
        time.sleep(0.0005)
    orders.send(b"%d" % os.getpid())
    order = json.loads(message)
    _call(order, dict(zip(order["numbers"], descriptors, strict=True)))


def _call(order: Mapping[str, Any], descriptors: Descriptors) -> NoReturn:
    status = 1
    try:
        prepare(descriptors)
        if "environment" in order:
            set_environment(order["environment"])
            os.chdir(order["folder"])
        module, _, function = order["call"].partition(":")
        status = getattr(importlib.import_module(module), function)(*order["arguments"]) or 0
    except BaseException:  # noqa: BLE001 - as an interpreter does: print it, and end with 1
        sys.excepthook(*sys.exc_info())
    finish(status)


# --- what runs in a forked process ---


def prepare(descriptors: Descriptors) -> None:
    """Give a forked process a session and descriptors of its own."""
    import fcntl  # does not exist on Windows

    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    highest = max(descriptors) + 1
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - names only
        if number not in descriptors.values():
            with suppress(OSError):
                os.close(number)
    kept = {  # out of the way of each other
        number: fcntl.fcntl(one, fcntl.F_DUPFD, highest) if one in descriptors and one != number else one
        for number, one in descriptors.items()
    }
    for number, one in kept.items():
        os.dup2(one, number)
    for one in {*kept.values(), *descriptors.values()} - {*descriptors}:
        os.close(one)
    set_streams()


def set_streams(encoding: str = "utf-8", errors: str = "backslashreplace") -> None:
    """Let Python print to stdout and stderr without a buffer of its own, unless it has been told not to."""
    for number, name, how in ((1, "stdout", errors), (2, "stderr", "backslashreplace")):
        if getattr(sys, name) is not None:
            raw = open(number, "wb", buffering=0, closefd=False)  # noqa: SIM115 - for as long as it runs
            stream = io.TextIOWrapper(raw, encoding=encoding, errors=how, write_through=True)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def set_environment(variables: Mapping[str, str]) -> None:
    """Replace all variables, and what torch read from them when it was imported."""
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
    config = sys.modules["torch._inductor.config"]
    config.cpp.cxx = None, variables.get("CXX", "g++")
    config.cpp_cache_precompile_headers = variables.get("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "1") == "1"


def finish(status: int) -> NoReturn:
    """End the process as an interpreter ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            status = 120
    os._exit(status & 255)


def become_engine(
    environment: Mapping[str, str],
    config: Mapping[str, Any],
    *,
    is_verified_forked: bool = True,
    at_first: Callable[[], object] = lambda: None,
) -> None:
    """Be what `launch._popen` starts. Artifacts are verified in forks of the server too, if that is wanted."""
    marked = {boot.CONFIG_VARIABLE: json.dumps(config), MARK_VARIABLE: str(config["mark"])}
    set_environment({**environment, **marked})
    boot._make_importable = lambda: None
    at_first()
    if is_verified_forked:
        importlib.import_module("ace_studio.engine.fresh.processes")._Server.__init__ = _forked_verifier
    boot.run_and_exit()


def _forked_verifier(self: Any, module: str, function: str) -> None:
    """What `_Server.__init__` does, with a fork of the server as the process that has imported the module."""
    self.environment = importlib.import_module("ace_studio.engine.fresh.processes")._environment()
    self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    order = {"call": "ace_studio.engine.fresh.server:serve", "arguments": ("3", module, function)}
    order |= {"environment": self.environment, "folder": os.getcwd()}  # noqa: PTH109
    with theirs, open(os.devnull, "r+b") as nothing:  # noqa: PTH123
        descriptors = dict.fromkeys((0, 1, 2), nothing.fileno()) | {3: theirs.fileno()}
        pid = _give(_address, order, descriptors)
    self._process = SimpleNamespace(pid=pid, kill=lambda: os.kill(pid, signal.SIGKILL), wait=lambda: None)


def run_command(*words: str) -> int:
    """Be ``python -m ace_studio WORDS``, whose engine is a fork of this process."""
    launch._popen = fork_engine
    sys.argv = ["ace-studio", *words]
    return importlib.import_module("ace_studio.__main__").main()


def fork_engine(
    options: launch.LaunchOptions, config: Mapping[str, Any], inherited: tuple[int, ...], **how: Any
) -> subprocess.Popen[bytes]:
    """What `launch._popen` does, with a fork of this process, which is one of the server's."""

    def fork(descriptors: Descriptors) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                prepare(descriptors)
                become_engine(options.environment, config, **how)
            except BaseException:  # noqa: BLE001 - it must not go on as what it was forked from
                sys.excepthook(*sys.exc_info())
            os._exit(1)
        return pid

    return _with_pipes(fork, inherited)


if __name__ == "__main__":
    importlib.import_module("tests.forked_engines").main()  # not as __main__, which nothing could import
