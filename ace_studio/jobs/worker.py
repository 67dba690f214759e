"""The child side: takes requests, runs them one after another in the main thread, answers with events.

A second thread reads requests, so that a cancel arrives while a job runs. What user code prints goes to the process's
own stdout and stderr, which the parent reads: a crash in native code loses none of it, and no lock of ours is involved.
"""

import _thread
import gc
import importlib
import os
import platform
import queue
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import _exit as end_process
from types import FrameType
from typing import Any, NoReturn, Protocol

import msgspec

from ace_studio.engine.progress import Reporter
from ace_studio.jobs.answer import ENGINE_MODULE, HANDLERS_VARIABLE, Handler, answer_request, load_handlers, with_cause
from ace_studio.jobs.channel import Channel, ChannelLost
from ace_studio.jobs.descriptors import Descriptors, move_up
from ace_studio.jobs.last_words import tell_last_words
from ace_studio.jobs.processes import kill_group
from ace_studio.records import messages
from ace_studio.records.errors import AceError

INTERRUPT_AFTER_S = 1.0
"""Seconds until a cancelled job that reports nothing gets a KeyboardInterrupt; the parent kills later than that."""


def run_worker(config: Mapping[str, Any]) -> NoReturn:
    """Connect, import the engine, send WorkerReady, serve until the parent ends or says stop, and end the process."""
    channel = Channel(_connect(config))
    named = os.environ.get(HANDLERS_VARIABLE)
    gc.disable()  # modules stay for good: to look for garbage in them, now or later, is in vain
    handlers = load_handlers(named or ENGINE_MODULE)
    gc.freeze()
    gc.enable()
    read_state = None
    if not named:
        # By name: other handlers do without the engine, and its import takes seconds.
        importlib.import_module("ace_studio.engine.load.import_gate").install_gate()
        read_state = importlib.import_module("ace_studio.engine.pipeline.process_state").ProcessState
    torch = sys.modules.get("torch")
    ready = messages.WorkerReady(
        protocol=messages.PROTOCOL_VERSION,
        pid=os.getpid(),
        python=platform.python_version(),
        torch=str(getattr(torch, "__version__", "")),
    )
    channel.send(messages.encode_message(ready))
    Worker(channel, handlers, read_state).serve()
    with suppress(Exception):  # a job may have left anything there
        sys.stdout.flush()
        sys.stderr.flush()
    # User code may have left threads and exit hooks that never end.
    end_process(0)


def _connect(config: Mapping[str, Any]) -> socket.socket:
    """The inherited socket, or a connection to the parent's port that begins with the one-time token."""
    if "descriptor" in config:
        inherited = int(config["descriptor"])
        channel = socket.socket(fileno=move_up(inherited))
        os.close(inherited)
        return channel
    connection = socket.create_connection(("127.0.0.1", int(config["port"])), timeout=10)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    Channel(connection).send(str(config["token"]).encode())
    return connection


class State(Protocol):
    """How the process was before a job."""

    def put_back(self) -> tuple[str, ...]:
        """Make it so again, and return in words what is not."""


class Worker:
    """Serves requests from a channel with a table of handlers."""

    def __init__(
        self,
        channel: Channel,
        handlers: Mapping[type[messages.AnyRequest], Handler],
        read_state: Callable[[], State] | None = None,
    ) -> None:
        self._channel = channel
        self._handlers = handlers
        self._read_state = read_state
        self._descriptors = Descriptors()
        self._requests: queue.Queue[messages.AnyRequest | None] = queue.Queue()
        self._cancelled: set[str] = set()
        self._pid = os.getpid()
        self._interruptible = ""
        """The job that a KeyboardInterrupt may end now; empty outside its handler."""

    def serve(self) -> None:
        """Run jobs until a ShutdownRequest, or until one spoils the process; called in the main thread."""
        signal.signal(signal.SIGINT, self._on_interrupt)
        tell_last_words()
        threading.Thread(target=self._listen, name="ace-requests", daemon=True).start()
        left: tuple[str, ...] = ()
        while not left and (request := self._requests.get()) is not None:
            state = self._read_state() if self._read_state is not None else None
            answer = self._answer(request)
            left, state = self._put_back(state), None  # it holds what the job's modules held
            if left:
                self._send(messages.WorkerSpoiled(job=request.job, left=left))
            try:
                self._send(with_cause(answer, left))
            except AceError as error:
                self._send(messages.JobFailed(job=request.job, problems=error.problems))

    def _put_back(self, state: State | None) -> tuple[str, ...]:
        """Put back what the job did to the process, and return what a later job would suffer from."""
        try:
            return (*(state.put_back() if state is not None else ()), *self._descriptors.put_back())
        except BaseException as error:  # noqa: BLE001 - a state in which this fails is reason enough
            return (f"its state cannot be put back ({type(error).__name__}: {error})",)

    def _answer(self, request: messages.AnyRequest) -> messages.AnyEvent:
        job = request.job
        try:
            return answer_request(
                request, self._interruptible_handler, emit=self._send, is_cancelled=lambda: job in self._cancelled
            )
        finally:
            self._interruptible = ""
            self._cancelled.discard(job)

    def _interruptible_handler(self, request: messages.AnyRequest, reporter: Reporter) -> None:
        self._interruptible = request.job
        self._handlers[type(request)](request, reporter)
        self._interruptible = ""

    def _listen(self) -> None:
        """Read requests until the parent is gone, in a thread of its own."""
        try:
            while True:
                self._take(messages.decode_request(self._channel.receive()))
        except (ChannelLost, msgspec.DecodeError):
            die()

    def _take(self, request: messages.AnyRequest) -> None:
        match request:
            case messages.CancelRequest(job=job):
                self._cancelled.add(job)
                self._interrupt_later(job)
            case messages.ShutdownRequest():
                self._requests.put(None)
            case _:
                self._requests.put(request)

    def _interrupt_later(self, job: str) -> None:
        timer = threading.Timer(INTERRUPT_AFTER_S, self._interrupt, (job,))
        timer.daemon = True
        timer.start()

    def _interrupt(self, job: str) -> None:
        """Interrupt a job that does not check whether it was cancelled; wait again if its handler has not begun."""
        if job not in self._cancelled:
            return
        if self._interruptible != job:
            self._interrupt_later(job)
        elif hasattr(signal, "pthread_kill"):
            # A real signal, because it also ends a sleep or a read that waits in the kernel.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        else:
            _thread.interrupt_main()

    def _on_interrupt(self, _number: int, frame: FrameType | None) -> None:
        """Raise in the main thread if a cancelled job still runs in it, but not inside of an import.

        A half-imported module stays broken for all later jobs of this process.
        """
        if self._interruptible not in self._cancelled:
            return
        if any(one.f_code.co_name == "_find_and_load" for one, _ in traceback.walk_stack(frame)):
            self._interrupt_later(self._interruptible)
        else:
            self._interruptible = ""
            raise KeyboardInterrupt

    def _send(self, event: messages.AnyEvent | messages.Event) -> None:
        if os.getpid() != self._pid:
            end_process(0)  # a process that the job forked came back here: the channel is not its own
        try:
            self._channel.send(messages.encode_message(event))  # type: ignore[arg-type]
        except ChannelLost:
            die()


def die() -> None:
    """End this process and all it started, because the parent is gone."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        kill_group(os.getpgrp())
    end_process(70)
