"""The parent side: starts a worker process, sends requests, hands out its events, and ends it for certain.

No Qt and no torch. Threads read the channel and the output; whoever owns the client takes events from one queue.
"""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import msgspec
import psutil

from ace_studio.jobs.autopsy import Death, cannot_start, cause_of_death
from ace_studio.jobs.channel import Channel, ChannelLost
from ace_studio.jobs.launch import Launched, LaunchOptions, Transport, launch
from ace_studio.jobs.log_pump import TAIL_LINES, LogPump
from ace_studio.jobs.processes import kill_group, kill_marked, oom_kills
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import (
    JOB_ENDS,
    PROTOCOL_VERSION,
    AnyEvent,
    AnyRequest,
    CancelRequest,
    LogLine,
    ShutdownRequest,
    WorkerLost,
    WorkerReady,
    decode_event,
    encode_message,
)

TERM_GRACE_S = 0.3
"""Seconds between SIGTERM and SIGKILL."""
DRAIN_S = 0.3
"""Seconds that may pass after a death until what it left in channel and pipes was read."""
CANCELLED_BY_FORCE = Problem(
    code=ErrorCode.CANCELLED,
    what="The job was stopped by ending the engine process",
    why="It did not stop by itself when asked",
)
KILLED = Problem(code=ErrorCode.CANCELLED, what="The engine process was ended", why="Somebody asked for that")


class WorkerClient:
    """One worker process at a time, and the queue of its events. All methods may be called from any thread."""

    def __init__(
        self,
        interpreter: str = "",
        *,
        handlers: str = "",
        transport: Transport | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            interpreter: Python to run the engine with; empty for the one that runs this.
            handlers: module or ``.py`` file that serves the requests; empty for the engine.
            transport: how to connect; None for the best of the platform.
            environment: variables on top of the clean environment.
        """
        options = LaunchOptions(handlers=handlers, environment=environment or {})
        if interpreter:
            options = replace(options, interpreter=interpreter)
        self._options = options if transport is None else replace(options, transport=transport)
        self._events: queue.SimpleQueue[AnyEvent | None] = queue.SimpleQueue()
        self._worker: _Worker | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the worker, once it has been started."""
        return self._worker.pid if self._worker else None

    @property
    def is_running(self) -> bool:
        """Whether a worker is starting or alive."""
        return self._worker is not None and self._worker.is_alive

    def start(self) -> None:
        """Start a worker and return at once; WorkerReady or WorkerLost follows. Does nothing if one is running."""
        if not self.is_running:
            self._worker = _Worker(self._options, self._events.put)

    def restart(self, interpreter: str = "") -> None:
        """End the worker, if any, without a WorkerLost, and start another, in another interpreter if one is named."""
        if self._worker is not None:
            self._worker.end_quietly()
        if interpreter:
            self._options = replace(self._options, interpreter=interpreter)
        self._worker = _Worker(self._options, self._events.put)

    def send(self, request: AnyRequest) -> None:
        """Send a request; before WorkerReady it waits. If the worker is dead, its WorkerLost is the answer.

        Raises: RuntimeError if no worker was ever started.
        """
        if self._worker is None:
            raise RuntimeError("start() comes before send()")
        self._worker.send(request)

    def cancel(self, job: str, *, grace_s: float = 3.0) -> None:
        """Ask a job to stop; if it is still there after ``grace_s``, end the process.

        JobCancelled answers the first (or the job's own end, if that came before); WorkerLost with the code CANCELLED
        the second.
        """
        if self._worker is not None:
            self._worker.cancel(job, grace_s)

    def kill(self) -> None:
        """End the process and all it started, now. WorkerLost with the code CANCELLED follows."""
        if self._worker is not None:
            self._worker.kill(KILLED)

    def close(self, *, timeout_s: float = 1.0) -> None:
        """Ask the worker to end, make it end, and end the iteration of events. Returns when nothing of it is left."""
        if self._worker is not None:
            self._worker.close(timeout_s)
        self._events.put(None)

    def next_event(self, timeout_s: float | None = None) -> AnyEvent | None:
        """Wait for the next event; None after ``timeout_s`` seconds, or when the client was closed."""
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if event is None:
            self._events.put(None)
        return event

    def events(self) -> Iterator[AnyEvent]:
        """All events as they come, until the client is closed."""
        while (event := self.next_event()) is not None:
            yield event

    def __enter__(self) -> WorkerClient:
        """Start the worker."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()


class _Worker:
    """One life of a worker process. Its threads end with it, and it says WorkerLost at most once."""

    def __init__(self, options: LaunchOptions, put: Callable[[AnyEvent], None]) -> None:
        self._options = options
        self._put = put
        self._lock = threading.Lock()
        self._launched: Launched | None = None
        self._channel: Channel | None = None
        self._outbox: list[bytes] = []
        self._jobs: list[str] = []
        self._cause: Problem | None = None
        self._is_quiet = False
        self._must_die = False
        self._was_ready = False
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.ended = threading.Event()
        # This thread starts the process and lives as long as it does: the kernel ties a child to its thread.
        threading.Thread(target=self._live, name="ace-worker", daemon=True).start()

    @property
    def pid(self) -> int | None:
        return self._launched.process.pid if self._launched else None

    @property
    def is_alive(self) -> bool:
        """False only once its WorkerLost is in the queue."""
        with self._lock:
            return not self.ended.is_set()

    # --- what the owner asks ---

    def send(self, request: AnyRequest) -> None:
        payload = encode_message(request)
        with self._lock:
            if not isinstance(request, CancelRequest | ShutdownRequest):
                self._jobs.append(request.job)
            if not self._was_ready:
                self._outbox.append(payload)
                return
        self._transmit(payload)

    def cancel(self, job: str, grace_s: float) -> None:
        with self._lock:
            if job not in self._jobs:
                return
        self.send(CancelRequest(job=job))
        timer = threading.Timer(grace_s, self._cancel_by_force, (job,))
        timer.daemon = True
        timer.start()

    def kill(self, cause: Problem) -> None:
        with self._lock:
            if self.ended.is_set():
                return
            self._cause = self._cause or cause
            self._must_die = True
            launched = self._launched
        if launched is not None:
            _end_all(launched)

    def end_quietly(self) -> None:
        self._is_quiet = True
        self.kill(KILLED)
        self.ended.wait(2.0)

    def close(self, timeout_s: float) -> None:
        self._is_quiet = True
        if self._was_ready and not self._jobs:
            self.send(ShutdownRequest(job=""))
            self.ended.wait(timeout_s)
        self.kill(KILLED)
        self.ended.wait(2.0)

    def _cancel_by_force(self, job: str) -> None:
        with self._lock:
            is_stubborn = job in self._jobs
        if is_stubborn:
            self.kill(CANCELLED_BY_FORCE)

    # --- the life of the process ---

    def _live(self) -> None:
        oom_kills_before = oom_kills()
        try:
            launched = launch(self._options)
        except OSError as error:
            self._end(cannot_start(self._options.interpreter, error), None)
            return
        with self._lock:
            self._launched = launched
            must_die = self._must_die
        if must_die:
            _end_all(launched)
        pumps = self._start_pumps(launched.process)
        reader = threading.Thread(target=self._read, args=(launched,), name="ace-events", daemon=True)
        reader.start()
        exit_code = launched.process.wait()
        # What the worker left behind holds our channel and pipes open, and must not outlive it in any case.
        kill_group(launched.process.pid)
        kill_marked(launched.mark)
        launched.cut_lifeline()
        self._drain(reader, pumps)
        for stream in (launched.process.stdout, launched.process.stderr):
            if stream is not None:
                stream.close()
        death = Death(
            exit_code=exit_code,
            was_ready=self._was_ready,
            was_oom_kill=oom_kills() > oom_kills_before,
            interpreter=self._options.interpreter,
            tail=tuple(self._tail),
        )
        self._end(self._cause or cause_of_death(death), exit_code)

    def _end(self, problem: Problem, exit_code: int | None) -> None:
        with self._lock:
            job = self._jobs[0] if self._jobs else ""
            self._jobs.clear()
            self.ended.set()
            if not self._is_quiet:
                self._put(WorkerLost(job=job, problem=problem, exit_code=exit_code))

    def _start_pumps(self, process: subprocess.Popen[bytes]) -> list[LogPump]:
        pumps = []
        for stream, name in ((process.stdout, "stdout"), (process.stderr, "stderr")):
            if stream is not None:
                pump = LogPump(stream.fileno(), stream=name, emit=self._log, tail=self._tail)
                pump.start()
                pumps.append(pump)
        return pumps

    def _drain(self, reader: threading.Thread, pumps: list[LogPump]) -> None:
        deadline_s = time.monotonic() + DRAIN_S
        reader.join(DRAIN_S)
        if self._channel is not None:
            self._channel.close()
        reader.join(DRAIN_S)
        for pump in pumps:
            pump.join(max(0.05, deadline_s - time.monotonic()))

    def _read(self, launched: Launched) -> None:
        """Take events off the channel until it ends, in a thread of its own."""
        try:
            channel = launched.connect()
            self._channel = channel
            while True:
                self._received(decode_event(channel.receive()))
        except ChannelLost:
            why = "It closed its end of the channel: code that it ran closed descriptors that are not its own"
        except (msgspec.DecodeError, _WrongProtocol) as error:
            why = f"It does not speak our protocol: {error}"
        with suppress(subprocess.TimeoutExpired):
            # The usual case: the process has ended, and its exit code says why.
            launched.process.wait(DRAIN_S if self._was_ready else 10 * DRAIN_S)
            return
        self.kill(Problem(code=ErrorCode.CRASH, what="The engine process stopped talking, and was ended", why=why))

    def _received(self, event: AnyEvent) -> None:
        if isinstance(event, WorkerReady):
            if event.protocol != PROTOCOL_VERSION:
                raise _WrongProtocol(f"version {event.protocol}, but this is version {PROTOCOL_VERSION}")
            self._flush()
        elif isinstance(event, JOB_ENDS):
            with self._lock, suppress(ValueError):
                self._jobs.remove(event.job)
        if not self._is_quiet:
            self._put(event)

    def _flush(self) -> None:
        with self._lock:
            waiting, self._outbox = self._outbox, []
            for payload in waiting:
                self._transmit(payload)
            self._was_ready = True

    def _transmit(self, payload: bytes) -> None:
        channel = self._channel
        if channel is not None:
            # A dead worker is the business of the thread that waits for its end.
            with suppress(ChannelLost):
                channel.send(payload)

    def _log(self, text: str, stream: str) -> None:
        if not self._is_quiet:
            job = self._jobs[:1]
            self._put(LogLine(job=job[0] if job else "", text=text, stream=stream))


class _WrongProtocol(Exception):  # noqa: N818 - private, and says what it is
    """The worker is of another version."""


def _end_all(launched: Launched) -> None:
    """End the process and all it started: first politely, for whom that is enough, then for certain."""
    process = launched.process
    descendants = _descendants(process.pid)
    with suppress(OSError):
        process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(TERM_GRACE_S)
    with suppress(OSError):
        process.kill()
    kill_group(process.pid)
    for descendant in descendants:
        with suppress(psutil.Error):
            descendant.kill()


def _descendants(pid: int) -> list[psutil.Process]:
    """The family of a process, while it still lives and can be asked (the only way on Windows)."""
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return []
