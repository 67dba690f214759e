"""One worker process, seen from the parent: starts it, sends requests, reads events, and makes sure that it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ace_studio.jobs.autopsy import Death, cannot_start, cause_of_death, found_at
from ace_studio.jobs.channel import Channel, ChannelLost
from ace_studio.jobs.launch import Launched, LaunchOptions, launch
from ace_studio.jobs.limit_watch import LimitWatch
from ace_studio.jobs.log_pump import TAIL_LINES, LogPump
from ace_studio.jobs.processes import kill_group, kill_marked, oom_kills
from ace_studio.jobs.rescue import AttemptWatch
from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import LimitsChoice
from ace_studio.records.scratch import remove_scratch

START_LIMIT_S = 120.0
"""Seconds after which an engine that is not ready is given up. Importing torch takes a minute from a cold disk."""
TERM_GRACE_S = 0.3
"""Seconds between SIGTERM and SIGKILL."""
STACK_GRACE_S = 2.0
"""Seconds that a hung process has to print the stack at which it hangs."""
DRAIN_S = 0.3
"""Seconds to read what a dead process left in the channel."""
PUMP_S = 2.0
"""Seconds to read what it left in the pipes."""
CANCELLED_BY_FORCE = Problem(
    code=ErrorCode.CANCELLED,
    what="The job was stopped by ending the engine process",
    why="It did not stop by itself when asked",
)
_SPOILED = "The engine is started anew, because the job left it unfit for another"
KILLED = Problem(code=ErrorCode.CANCELLED, what="The engine process was ended", why="Somebody asked for that")


class WorkerProcess:
    """One worker process from its start to its end. Its threads end with it; ``ended`` is called once, as the last."""

    def __init__(
        self,
        options: LaunchOptions,
        put: Callable[[messages.AnyEvent], None],
        *,
        ended: Callable[[WorkerProcess, Problem], None],
        attempt_grace_s: float,
        start_limit_s: float = START_LIMIT_S,
        limits: Callable[[], LimitsChoice] | None = None,
    ) -> None:
        self._options = options
        self._start_timer = threading.Timer(start_limit_s, self._end_unready, (start_limit_s,))
        self._start_timer.daemon = True
        self._put = put
        self._on_end = ended
        self._lock = threading.Lock()
        self._launched: Launched | None = None
        self._channel: Channel | None = None
        self._outbox: list[bytes] = []
        self._requests: list[messages.AnyRequest] = []
        self._cancelled: set[str] = set()
        self._cause: Problem | None = None
        self.is_silent = False
        """Whether its events are dropped and its death is not reported."""
        self.is_spoiled = False
        """Whether a job left it unfit for another; it ends with that job."""
        self._is_log_silent = False
        self._must_die = False
        self._was_ready = False
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.watch = AttemptWatch(grace_s=attempt_grace_s, overrun=self._end_hung)
        self.ended = threading.Event()
        self._limits = LimitWatch(
            request=lambda: next(iter(self._requests), None) if self._was_ready else None,
            pid=lambda: self.pid,
            say=lambda problem: self._tell(lambda job: messages.JobWarned(job=job, problem=problem)),
            end=self._end_at_limit,
            over=self.ended,
            limits=limits,
        )
        # This thread starts the process and lives as long as it does: the kernel ties a child to its thread.
        threading.Thread(target=self._run, name="ace-worker", daemon=True).start()

    @property
    def pid(self) -> int | None:
        """Process id, once the process has been started."""
        return self._launched.process.pid if self._launched else None

    # --- called by the owner ---

    def add_job(self, request: messages.AnyRequest) -> None:
        """Note a job before its request is sent."""
        with self._lock:
            if not isinstance(request, messages.CancelRequest | messages.ShutdownRequest):
                self._requests.append(request)

    def send(self, request: messages.AnyRequest) -> None:
        """Send a request; before WorkerReady it is kept back."""
        payload = messages.encode_message(request)
        with self._lock:
            if not self._was_ready:
                self._outbox.append(payload)
                return
        self._transmit(payload)

    def mark_cancelled(self, job: str) -> bool:
        """Note that a job was cancelled, and return whether it is still there."""
        with self._lock:
            self._cancelled.add(job)
            return self._has(job)

    def cancel(self, job: str, grace_s: float) -> None:
        """Ask a job to stop, and end the process if the job is still there after ``grace_s``."""
        self.send(messages.CancelRequest(job=job))
        timer = threading.Timer(grace_s, self._cancel_by_force, (job,))
        timer.daemon = True
        timer.start()

    def set_cause(self, cause: Problem) -> None:
        """Set why the process is about to die, unless a cause is known already."""
        with self._lock:
            if not self.ended.is_set():
                self._cause = self._cause or cause

    def kill(self, cause: Problem) -> None:
        """End the process and all it started, now."""
        self.set_cause(cause)
        with self._lock:
            if self.ended.is_set():
                return
            self._must_die = True
        self._end_process()

    def end(self, *, timeout_s: float = 0.0) -> None:
        """Kill the process, an idle one only after ``timeout_s`` to end by itself, and wait until it has ended."""
        if timeout_s and self._was_ready and not self._requests:
            self.send(messages.ShutdownRequest(job=""))
            self.ended.wait(timeout_s)
        self.kill(KILLED)
        self.ended.wait(2.0)

    def was_cancelled(self, job: str) -> bool:
        """Whether the job was to stop."""
        return job in self._cancelled

    def finish(self) -> tuple[list[messages.AnyRequest], bool]:
        """Return the unfinished jobs of the ended process, and whether they may go on: nobody wanted it to end."""
        with self._lock:
            requests, self._requests = self._requests, []
            self.ended.set()
            was_asked = self._cause is not None and self._cause.code is ErrorCode.CANCELLED
            was_cancelled = bool(requests) and self.was_cancelled(requests[0].job) and not self.is_spoiled
            return requests, not (self.is_silent or was_asked or was_cancelled)

    def _has(self, job: str) -> bool:
        return any(request.job == job for request in self._requests)

    def _cancel_by_force(self, job: str) -> None:
        with self._lock:
            is_running = self._has(job)
        if is_running:
            self.kill(CANCELLED_BY_FORCE)

    def _end_hung(self) -> None:
        """End a process that does not react; its interpreter prints the stack at which it hangs."""
        launched = self._launched
        if launched is not None and os.name == "posix":
            self._is_log_silent = True  # the stack goes into the details, not into the log
            with suppress(OSError):
                launched.process.send_signal(signal.SIGABRT)
            with suppress(subprocess.TimeoutExpired):
                launched.process.wait(STACK_GRACE_S)
        self._end_process()

    def _end_at_limit(self, problem: Problem) -> None:
        self.set_cause(problem)
        self._end_hung()

    def _end_unready(self, limit_s: float) -> None:
        if not self._was_ready:
            why = f"{self._options.interpreter} did not import the engine in that time"
            remedy = "Start the engine again, or choose another interpreter in the settings"
            what = f"The engine did not start within {limit_s:g} s, and was given up"
            self.kill(Problem(code=ErrorCode.TIMEOUT, what=what, why=why, remedy=remedy))

    def _end_process(self) -> None:
        if self._launched is not None:
            _end_tree(self._launched.process)

    # --- the threads of the process ---

    def _run(self) -> None:
        oom_kills_before = oom_kills()
        try:
            launched = launch(self._options)
        except OSError as error:
            self._on_end(self, cannot_start(self._options.interpreter, error))
            return
        with self._lock:
            self._launched = launched
            must_die = self._must_die
        if must_die:
            self._end_process()
        reader = threading.Thread(target=self._read, args=(launched,), name="ace-events", daemon=True)
        pumps: list[LogPump] = []
        try:
            self._start_timer.start()
            self._limits.start()
            pumps = self._start_pumps(launched.process)
            reader.start()
        except RuntimeError as error:  # no further thread
            self.kill(cannot_start(self._options.interpreter, error))
        launched.process.wait()
        self._start_timer.cancel()
        # What the worker left behind holds our channel and pipes open, and must not outlive it in any case.
        kill_group(launched.process.pid)
        kill_marked(launched.mark)
        launched.cut_lifeline()
        remove_scratch(launched.scratch)
        if reader.ident is not None:
            self._drain(reader, pumps)
        for stream in (launched.process.stdout, launched.process.stderr):
            if stream is not None:
                stream.close()
        death = Death(
            exit_code=launched.process.returncode,
            was_ready=self._was_ready,
            was_oom_kill=oom_kills() > oom_kills_before,
            interpreter=self._options.interpreter,
            tail=tuple(self._tail),
        )
        self._on_end(self, found_at(self._cause, death) if self._cause else cause_of_death(death))

    def _start_pumps(self, process: subprocess.Popen[bytes]) -> list[LogPump]:
        pumps = []
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                pump = LogPump(stream.fileno(), emit=self._log, tail=self._tail)
                pump.start()
                pumps.append(pump)
        return pumps

    def _drain(self, reader: threading.Thread, pumps: list[LogPump]) -> None:
        reader.join(DRAIN_S)
        if self._channel is not None:
            self._channel.close()
        reader.join(DRAIN_S)
        # They end with the pipes, which nobody holds any more; on a busy machine the last stack comes late.
        deadline_s = time.monotonic() + PUMP_S
        for pump in pumps:
            pump.join(max(0.05, deadline_s - time.monotonic()))

    def _read(self, launched: Launched) -> None:
        """Take events off the channel until it ends, in a thread of its own."""
        try:
            channel = launched.connect()
            self._channel = channel
            while True:
                self._take(messages.decode_event(channel.receive()))
        except ChannelLost:
            why = "It closed its end of the channel: code that it ran closed descriptors that are not its own"
        except (msgspec.DecodeError, _WrongProtocol) as error:
            why = f"It does not speak our protocol: {error}"
        with suppress(subprocess.TimeoutExpired):
            # The usual case: the process has ended, and its exit code says why.
            launched.process.wait(DRAIN_S if self._was_ready else 10 * DRAIN_S)
            return
        self.kill(Problem(code=ErrorCode.CRASH, what="The engine process stopped talking, and was ended", why=why))

    def _take(self, event: messages.AnyEvent) -> None:
        if self.watch.must_replace:
            return
        self._limits.observe(event)
        if isinstance(event, messages.WorkerReady):
            if event.protocol != messages.PROTOCOL_VERSION:
                raise _WrongProtocol(f"version {event.protocol}, but this is version {messages.PROTOCOL_VERSION}")
            self._start_timer.cancel()
            self._flush()
        elif isinstance(event, messages.WorkerSpoiled):
            self.is_spoiled = True
            event = messages.LogLine(job=event.job, text=f"{_SPOILED}: {'; '.join(event.left)}")
        elif isinstance(event, messages.JOB_ENDS):
            with self._lock:
                self._requests = [request for request in self._requests if request.job != event.job]
            self.watch.reset()
        must_end = self.watch.observe(event, next(iter(self._requests), None))
        if must_end or (self.is_spoiled and isinstance(event, messages.JOB_ENDS)):
            threading.Thread(target=self._end_process, name="ace-renew", daemon=True).start()
        if not self.is_silent:
            self._put(event)

    def _flush(self) -> None:
        with self._lock:
            waiting, self._outbox = self._outbox, []
            for payload in waiting:
                self._transmit(payload)
            self._was_ready = True

    def _transmit(self, payload: bytes) -> None:
        if self._channel is not None:
            # If the worker is dead, the thread that waits for its end reports that.
            with suppress(ChannelLost):
                self._channel.send(payload)

    def _log(self, text: str) -> None:
        self._tell(lambda job: messages.LogLine(job=job, text=text))

    def _tell(self, event: Callable[[str], messages.AnyEvent]) -> None:
        """Put an event of the parent's own, about the running job."""
        if not (self.is_silent or self._is_log_silent):
            self._put(event(next((request.job for request in self._requests[:1]), "")))


class _WrongProtocol(Exception):  # noqa: N818 - private, and says what it is
    """The worker is of another version."""


def _end_tree(process: subprocess.Popen[bytes]) -> None:
    """End the process and all it started: with SIGTERM, then with SIGKILL."""
    import psutil  # noqa: PLC0415 - not needed for the first picture of the window

    try:  # while it still lives and can be asked; the only way on Windows
        descendants = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        descendants = []
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
