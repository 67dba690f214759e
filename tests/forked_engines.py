"""Engines and commands that are forked from one process that has imported torch and run a job: the fork server.

Importing torch takes seconds, and so does the first job of a process. Tests that are about neither let the fork server
make their engines; the channel, the guard, the limits and the ways to end are those of an engine that is started.
``python -m tests.forked_engines ADDRESS`` listens on a Unix socket until its stdin is closed. An order is one message:
JSON, with the descriptors that the new process gets. The answer is the number of that process, which is a child of the
process that started the server. Linux only; elsewhere, engines and commands are started.
"""

from __future__ import annotations

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
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from ace_studio.jobs import boot, launch
from ace_studio.jobs.answer import HANDLERS_VARIABLE
from ace_studio.jobs.processes import MARK_VARIABLE

CAN_FORK = sys.platform == "linux"
ROOT = Path(__file__).resolve().parents[1]
ORDER_BYTES, MOST_DESCRIPTORS = 131_072, 16
Descriptors = Mapping[int, int]
"""Numbers in the new process -> numbers here. The new process has no others."""
_address = ""
"""The socket of the server, in the server and in what is forked from it."""


# --- who gives orders ---


class ForkServer:
    """The server, as those see it who give orders."""

    def __init__(self, address: str = "") -> None:
        """Store where it listens, if another process has started it."""
        self.address = address or str(Path(tempfile.mkdtemp(prefix="ace-fork-"), "orders"))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it is ready; where it runs, do nothing."""
        if self._process is None and CAN_FORK:
            command = [sys.executable, "-X", "faulthandler", "-m", "tests.forked_engines", self.address]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes)
            assert self._process.stdout is not None
            assert self._process.stdout.readline() == b"ready\n"

    def fork(self, call: str, *arguments: object, descriptors: Descriptors, **how: object) -> ForkedProcess:
        """Call a function in a process that is forked from the server.

        Args:
            call: ``module:function``; what it returns is the exit status.
            arguments: What it is called with; they travel as JSON.
            descriptors: What the process has open.
            how: ``environment`` of the process, and ``folder``, where it begins.

        Raises: OSError if the server is gone, or could not fork.
        """
        order = {"call": call, "arguments": arguments, "numbers": list(descriptors), **how}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as orders:
            orders.connect(self.address)
            socket.send_fds(orders, [json.dumps(order).encode()], list(descriptors.values()))
            if not (answer := orders.recv(64)):
                raise ConnectionError("the fork server forked nothing")
            return ForkedProcess(int(answer), orders.detach())

    def popen(
        self, options: launch.LaunchOptions, config: Mapping[str, Any], inherited: tuple[int, ...]
    ) -> subprocess.Popen[bytes]:
        """What `launch._popen` does, with a fork of the server as the interpreter; others are started."""
        if not CAN_FORK or options.interpreter != sys.executable or HANDLERS_VARIABLE in options.environment:
            return _start_engine(options, config, inherited)
        with _Pipes(inherited) as pipes:
            words = dict(options.environment), dict(config)
            process = self.fork("tests.forked_engines:become_engine", *words, descriptors=pipes.descriptors)
        return pipes.given_to(process)

    def run(self, words: Sequence[object], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """What ``python -m ace_studio WORDS`` prints in a folder, and its exit code."""
        given = [str(word) for word in words]
        how: dict[str, Any] = {"environment": {**os.environ, **environment}, "folder": str(folder)}
        if not CAN_FORK:
            command = [sys.executable, "-m", "ace_studio", *given]
            return subprocess.run(
                command, cwd=folder, env=how["environment"], capture_output=True, text=True, check=False
            )
        with _Pipes() as pipes:
            process = self.fork("tests.forked_engines:run_command", *given, descriptors=pipes.descriptors, **how)
        out, errors = pipes.given_to(process).communicate()
        return subprocess.CompletedProcess(given, process.returncode, out.decode(), errors.decode())

    def command(self, *words: str) -> list[str]:
        """A program that does what ``python -m ace_studio WORDS`` does, with forked engines."""
        if not CAN_FORK:
            return [sys.executable, "-m", "ace_studio", *words]
        code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.forked_engines import run_here"
        return [sys.executable, "-P", "-c", f"{code}; sys.exit(run_here({self.address!r}, *sys.argv[1:]))", *words]

    def close(self) -> None:
        """End the server, if it was started here; what it has forked goes on."""
        if self._process is not None:
            self._process.communicate()


_start_engine = launch._popen


class ForkedProcess(subprocess.Popen[bytes]):
    """A process that was forked from the server, which tells how it has ended."""

    def __init__(self, pid: int, told: int) -> None:
        """Have what `communicate` needs, and nothing started."""
        self.__dict__.update(
            pid=pid, args="forked", returncode=None, stdin=None, stdout=None, stderr=None, text_mode=False, _told=told,
            _input=None, _communication_started=False, _waitpid_lock=threading.Lock(),
        )  # fmt: skip

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if (code := self._look(timeout)) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _look(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], timeout_s)[0]:
            with self._waitpid_lock:
                if self.returncode is None:
                    self.returncode = os.waitstatus_to_exitcode(int(os.read(self._told, 64) or b"256"))
        return self.returncode

    def __del__(self) -> None:
        """Forget it."""
        os.close(self._told)


class _Pipes:
    """Nothing to read, and two pipes for what a process prints."""

    def __init__(self, inherited: Sequence[int] = ()) -> None:
        (out, self._to_out), (errors, self._to_errors) = os.pipe(), os.pipe()
        self._nothing = os.open(os.devnull, os.O_RDONLY)
        self.descriptors = {0: self._nothing, 1: self._to_out, 2: self._to_errors} | {one: one for one in inherited}
        self._streams = os.fdopen(out, "rb"), os.fdopen(errors, "rb")

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._nothing, self._to_out, self._to_errors):
            os.close(one)

    def given_to(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        """The process, with the ends from which one reads."""
        process.stdout, process.stderr = self._streams
        return process


# --- the server ---


def main() -> None:
    """Serve orders until stdin ends."""
    global _address  # noqa: PLW0603 - of the process, and of all that are forked from it
    _address = sys.argv[1]
    _warm_up()
    waiting: dict[int, socket.socket] = {}
    somebody_ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(_address)
        listener.listen(16)
        print("ready", flush=True)
        while 0 not in (ready := select.select([listener, somebody_ended, 0], [], [])[0]):
            if listener in ready:
                orders, _ = listener.accept()
                waiting[_serve(orders)] = orders
            if somebody_ended in ready:
                os.read(somebody_ended, 4096)
            _tell_ends(waiting)


def _tell_ends(waiting: dict[int, socket.socket]) -> None:
    """Tell those who gave the orders which processes have ended, and how."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with waiting.pop(ended[0]) as orders, suppress(OSError):
                orders.send(b"%d" % ended[1])


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


def _serve(orders: socket.socket) -> int:
    """Fork a process as ordered, and return its number."""
    message, descriptors, *_ = socket.recv_fds(orders, ORDER_BYTES, MOST_DESCRIPTORS)
    order = json.loads(message)
    pid = fork_here(partial(_call, order), dict(zip(order["numbers"], descriptors, strict=True)))
    orders.send(b"%d" % pid)
    for one in descriptors:
        os.close(one)
    return pid


def _call(order: Mapping[str, Any]) -> int | None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if "environment" in order:
        set_environment(order["environment"])
        os.chdir(order["folder"])
    module, _, function = order["call"].partition(":")
    status: int | None = getattr(importlib.import_module(module), function)(*order["arguments"])
    return status


# --- what runs in a forked process ---


def be(call: Callable[[], int | None], descriptors: Descriptors) -> NoReturn:
    """Be a process that calls this and ends as an interpreter ends, with what it returns as its status."""
    status: int | None = 1
    try:
        prepare(descriptors)
        status = call()
    except BaseException:  # noqa: BLE001 - as an interpreter does: print it, and end with 1
        sys.excepthook(*sys.exc_info())
    finish(status or 0)


def prepare(descriptors: Descriptors) -> None:
    """Give a forked process descriptors of its own."""
    import fcntl  # does not exist on Windows

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
    """Replace all variables, and what was read from them when torch and the targets were imported."""
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
    config = sys.modules["torch._inductor.config"]
    config.cpp.cxx = None, variables.get("CXX", "g++")
    targets = sys.modules["ace_studio.records.targets"]
    rows = msgspec.json.decode(variables.get(targets.ROWS_VARIABLE, "[]"), type=list[targets.TargetRow])
    targets.TARGET_ROWS.update({row.name: row for row in rows})
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


def fork_here(call: Callable[[], int | None], descriptors: Descriptors) -> int:
    """Call something in a fork of this process, which is one of the server's, and return its number."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        be(call, descriptors)
    while os.getpgid(pid) != pid:  # whoever kills its group now would kill this process
        time.sleep(0.0005)
    return pid


def run_command(*words: str) -> int | None:
    """Be ``python -m ace_studio WORDS``, whose engine is a fork of this process."""
    launch._popen = fork_engine
    sys.argv = ["ace-studio", *words]
    status: int | None = importlib.import_module("ace_studio.__main__").main()
    return status


def fork_engine(
    options: launch.LaunchOptions, config: Mapping[str, Any], inherited: tuple[int, ...], **how: Any
) -> subprocess.Popen[bytes]:
    """What `launch._popen` does, with a fork of this process as the interpreter; ``how`` is for `become_engine`."""
    with _Pipes(inherited) as pipes:
        pid = fork_here(partial(become_engine, options.environment, config, **how), pipes.descriptors)
    return pipes.given_to(_own_child(pid))


def _own_child(pid: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen.__new__(subprocess.Popen)
    process.__dict__.update(
        pid=pid, args="forked", returncode=None, stdin=None, stdout=None, stderr=None, _child_created=True,
        _waitpid_lock=threading.Lock(),
    )  # fmt: skip
    return process


def become_engine(
    environment: Mapping[str, str],
    config: Mapping[str, Any],
    *,
    at_first: Callable[[], object] = lambda: None,
    forks_verifiers: bool = False,
) -> None:
    """Be what `launch._popen` starts.

    Artifacts are verified in forks of the server, or of this process if it ``forks_verifiers``: these are where it is.
    """
    marked = {boot.CONFIG_VARIABLE: json.dumps(config), MARK_VARIABLE: str(config["mark"])}
    set_environment({**environment, **marked})
    boot._make_importable = lambda: None
    processes = importlib.import_module("ace_studio.engine.fresh.processes")
    processes._Server.__init__ = partialmethod(
        _make_verifier, fork=_fork_here if forks_verifiers else _fork_from_server
    )
    at_first()
    boot.run_and_exit()


def _make_verifier(self: Any, module: str, function: str, *, fork: Callable[..., Any]) -> None:
    """What `_Server.__init__` does, with a fork as the process that has imported the module."""
    self.environment = importlib.import_module("ace_studio.engine.fresh.processes")._environment()
    self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, Path(os.devnull).open("r+b") as nothing:
        descriptors = dict.fromkeys((0, 1, 2), nothing.fileno()) | {3: theirs.fileno()}
        self._process = fork(module, function, descriptors)


def _fork_here(module: str, function: str, descriptors: Descriptors) -> subprocess.Popen[bytes]:
    serve = importlib.import_module("ace_studio.engine.fresh.server").serve
    return _own_child(fork_here(partial(serve, "3", module, function), descriptors))


def _fork_from_server(module: str, function: str, descriptors: Descriptors) -> subprocess.Popen[bytes]:
    words = "ace_studio.engine.fresh.server:serve", "3", module, function
    how: dict[str, Any] = {"environment": dict(os.environ), "folder": "/"}
    return ForkServer(_address).fork(*words, descriptors=descriptors, **how)


def run_here(address: str, *words: str) -> int | None:
    """Be a command that was started; its engines are forks of the server."""
    launch._popen = ForkServer(address).popen
    sys.argv = ["ace-studio", *words]
    status: int | None = importlib.import_module("ace_studio.__main__").main()
    return status


if __name__ == "__main__":
    importlib.import_module("tests.forked_engines").main()  # not as __main__, which nothing could import
