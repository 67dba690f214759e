"""The parent side: starts a worker process, sends requests, queues its events, and makes sure that it ends.

No Qt and no torch. Threads read the channel and the output; the owner of the client takes events from one queue.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from ace_studio.jobs.launch import LaunchOptions, Transport
from ace_studio.jobs.rescue import ATTEMPT_GRACE_S
from ace_studio.jobs.worker_process import KILLED, START_LIMIT_S, WorkerProcess
from ace_studio.records import containment, messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import LimitsChoice


class WorkerClient:
    """One worker process at a time, and the queue of its events. All methods may be called from any thread.

    A worker that dies during a capture attempt is replaced, and the job goes on without that capture method: the
    owner sees an `AttemptEnded`, another `WorkerReady`, and then the rest. One that a job has spoiled is replaced
    after that job's end, with a line in the log. Every other death is a `WorkerLost`.
    """

    def __init__(
        self,
        interpreter: str = "",
        *,
        transport: Transport | None = None,
        environment: Mapping[str, str] | None = None,
        attempt_grace_s: float = ATTEMPT_GRACE_S,
        start_limit_s: float = START_LIMIT_S,
        contain: Callable[[], bool | None] = lambda: None,
        limits: Callable[[], LimitsChoice] | None = None,
    ) -> None:
        """Store the options; nothing is started yet.

        Args:
            interpreter: Python to run the engine with; empty for the one that runs this.
            transport: How to connect; None for the platform's best.
            environment: Variables on top of the clean environment.
            attempt_grace_s: Seconds over its time limit after which a capture attempt is ended from outside.
            start_limit_s: Seconds after which an engine that is not ready is given up.
            contain: Asked before each job that runs code, whether its worker is to be contained. None: where the
                kernel can, if it tries fixes, which is code that nobody has read, or runs a stranger's file.
            limits: Asked for what holds where a job's recipe sets no limit. If none limits the time, a silent step is
                only told; without this it is ended after a default time, because nobody may be looking.
        """
        options = LaunchOptions(environment=environment or {})
        if interpreter:
            options = replace(options, interpreter=interpreter)
        self._options = options if transport is None else replace(options, transport=transport)
        self._contain = contain
        self._events: queue.SimpleQueue[messages.AnyEvent | None] = queue.SimpleQueue()
        self._make_worker = partial(
            WorkerProcess, attempt_grace_s=attempt_grace_s, start_limit_s=start_limit_s, limits=limits
        )
        self._lock = threading.RLock()
        """Guards `_worker`; taken before a worker's own lock, never while waiting for a worker."""
        self._worker: WorkerProcess | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the worker, once it has been started."""
        worker = self._worker
        return worker.pid if worker else None

    @property
    def is_running(self) -> bool:
        """Whether a worker is starting or alive."""
        with self._lock:
            return self._worker is not None and not self._worker.ended.is_set()

    def start(self) -> None:
        """Start a worker unless one is running, and return at once; WorkerReady or WorkerLost follows."""
        with self._lock:
            if not self.is_running:
                self._worker = self._new_worker()

    def restart(self, interpreter: str = "") -> None:
        """End the worker, if any, without a WorkerLost, and start another, in another interpreter if one is named."""
        worker = self._silence()
        if worker is not None:
            worker.end()
        with self._lock:
            if interpreter:
                self._options = replace(self._options, interpreter=interpreter)
            self._worker = self._new_worker()

    def use(self, interpreter: str) -> None:
        """Serve the next requests in this interpreter: a worker in another one is replaced. Empty: as it is."""
        if interpreter and interpreter != self._options.interpreter:
            self.restart(interpreter)

    def send(self, request: messages.AnyRequest) -> None:
        """Send a request; before WorkerReady it waits. If the worker is dead, its WorkerLost is the answer.

        A worker can only be contained from its start, and for one set of folders: for another it is replaced.

        Raises: RuntimeError if no worker was ever started.
        """
        if (code := messages.code_of(request)) is not None:
            choice = self._contain()
            if choice is None:
                elsewhere = containment.from_elsewhere(code)
                choice = bool(elsewhere or isinstance(request, messages.FixRequest)) and containment.available()[0]
                if choice and elsewhere:
                    self._events.put(messages.LogLine(job=request.job, text=f"{code.name}: {elsewhere}. {_CONTAINED}"))
            wanted = messages.writable_folders(request) if choice else None
            is_able, reason = containment.available() if wanted is not None else (True, "")
            if not is_able:
                self._events.put(messages.JobFailed(job=request.job, problems=(_cannot_contain(reason),)))
                return
            if wanted != self._options.contained_to:
                self._options = replace(self._options, contained_to=wanted)
                self.restart()
        with self._lock:
            worker = self._worker
            if worker is None:
                raise RuntimeError("start() comes before send()")
            worker.add_job(request)
        worker.send(request)

    def cancel(self, job: str, *, grace_s: float = 3.0) -> None:
        """Ask a job to stop; if it is still there after ``grace_s``, end the process.

        JobCancelled answers the first (or the job's own end, if that came before); WorkerLost with the code CANCELLED
        the second.
        """
        with self._lock:
            worker = self._worker
            is_there = worker is not None and worker.mark_cancelled(job)
        if worker is not None and is_there:
            worker.cancel(job, grace_s)

    def kill(self) -> None:
        """End the process and all it started, now. WorkerLost with the code CANCELLED follows."""
        with self._lock:
            worker = self._worker
            if worker is not None:
                worker.set_cause(KILLED)
        if worker is not None:
            worker.kill(KILLED)

    def close(self, *, timeout_s: float = 1.0) -> None:
        """Ask the worker to end, make it end, and end the iteration of events. Returns when all its processes ended."""
        worker = self._silence()
        if worker is not None:
            worker.end(timeout_s=timeout_s)
        self._events.put(None)

    def _new_worker(self) -> WorkerProcess:
        return self._make_worker(self._options, self._events.put, ended=self._worker_ended)

    def _silence(self) -> WorkerProcess | None:
        """Drop the worker's further events, do not replace it when it dies, and return it."""
        with self._lock:
            if self._worker is not None:
                self._worker.is_silent = True
            return self._worker

    def _worker_ended(self, worker: WorkerProcess, problem: Problem) -> None:
        """Report the end of a worker, or go on in a new one. Called last, in the worker's own thread."""
        with self._lock:
            requests, may_go_on = worker.finish()
            rescue = worker.watch.rescue(requests[0], problem) if may_go_on and requests else None
            if worker.is_silent:
                pass
            elif worker.is_spoiled and may_go_on:  # its job has ended; those that waited are served by another one
                stopped = [request.job for request in requests if worker.was_cancelled(request.job)]
                for job in stopped:
                    self._events.put(messages.JobCancelled(job=job))
                self._renew([request for request in requests if request.job not in stopped])
            elif rescue is None:
                job = requests[0].job if requests else ""
                self._events.put(messages.WorkerLost(job=job, problem=worker.watch.cause(problem)))
            else:
                job, detail = rescue.request.job, f"a new process, going on without {rescue.lost}"
                if rescue.outcome is not None:
                    self._events.put(messages.AttemptEnded(job=job, outcome=rescue.outcome))
                self._events.put(messages.TargetAtWork(job=job))
                self._events.put(messages.Progress(job=job, phase=messages.Phase.START, detail=detail))
                self._renew([rescue.request, *requests[1:]])
            worker.watch.reset()

    def _renew(self, requests: list[messages.AnyRequest]) -> None:
        """Serve the requests with a new worker; under the lock."""
        self._worker = self._new_worker()
        for request in requests:
            self._worker.add_job(request)
            self._worker.send(request)

    def next_event(self, timeout_s: float | None = None) -> messages.AnyEvent | None:
        """Wait for the next event; None after ``timeout_s`` seconds, or when the client was closed."""
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if event is None:
            self._events.put(None)
        return event

    def events(self) -> Iterator[messages.AnyEvent]:
        """Yield events as they come, until the client is closed."""
        while (event := self.next_event()) is not None:
            yield event

    def __enter__(self) -> WorkerClient:
        """Start the worker."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()


_CONTAINED = "Its job runs contained; --no-contain (in the window: Settings > Engine > Contain: never) ends that"


def _cannot_contain(reason: str) -> Problem:
    remedy = (
        "Run it without --contain (in the window: Settings > Engine > Contain: auto or never) if you trust the code"
    )
    what = "The job cannot be contained on this machine, and was not started"
    return Problem(code=ErrorCode.UNSUPPORTED, what=what, why=reason, remedy=remedy)
