"""The queue of requests to the engine: one at a time; a lost engine process is restarted."""

from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.session.document import Activity, Document, EngineState, JobKind

IDLE_DEATHS = 3
"""Consecutive deaths without any work after which the engine is not restarted automatically."""

VERBS: dict[type[messages.AnyRequest], JobKind] = {
    messages.InspectRequest: JobKind.INSPECT,
    messages.DoctorRequest: JobKind.ENVIRONMENT,
    messages.TraceRequest: JobKind.TRACE,
    messages.RunRequest: JobKind.RUN,
    messages.FixRequest: JobKind.FIX,
    messages.CatchRequest: JobKind.CATCH,
    messages.SensitivityRequest: JobKind.SENSITIVITY,
    messages.PrunePreviewRequest: JobKind.PRUNE,
    messages.ValuesRequest: JobKind.VALUES,
}


class EngineLink(Protocol):
    """What the session needs of the engine. Events come back through `Session.apply`."""

    def send(self, request: messages.AnyRequest) -> None:
        """Send a request. The session sends one at a time, and only after WorkerReady."""

    def cancel(self, job: str) -> None:
        """Stop the job: ask first, then end the process. An empty job is the start of the process, ended at once."""

    def restart(self) -> None:
        """Start a new engine process (ending the old one); WorkerReady or WorkerLost follows."""


def start_problem(document: Document) -> Problem | None:
    """Why a trace or a run cannot start now, or None."""
    if not document.recipe.model.source:
        return Problem(code=ErrorCode.USAGE, what="No model is open", remedy="Open a model file or a recipe first")
    if document.read_only is not None:
        return document.read_only
    if document.activity.is_working:
        what = f"The engine is busy with a {document.activity.verb}"
        return Problem(code=ErrorCode.USAGE, what=what, remedy="Wait until it is done, or cancel it")
    return None


def with_options(request: messages.TraceRequest, *, anew: bool, compare_rungs: bool) -> messages.TraceRequest:
    """The request with options for this job only."""
    capture = request.recipe.capture
    capture = replace(capture, cache=capture.cache and not anew, compare_rungs=capture.compare_rungs or compare_rungs)
    return replace(request, recipe=replace(request.recipe, capture=capture))


class JobQueue:
    """The current request, the waiting ones, and the state of the engine."""

    def __init__(self, engine: EngineLink, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._clock = clock
        self._waiting: list[messages.AnyRequest] = []
        self._is_ready = False
        self._is_lost = False
        self._is_cancelling = False
        self._idle_deaths = 0
        self._missing_engine: Problem | None = None
        self._count = 0
        self.current: messages.AnyRequest | None = None
        """The request that the engine is working on."""
        self.is_abandoned = False
        """Whether the findings of the current job are to be dropped."""
        self.on_send: Callable[[messages.AnyRequest], None] = lambda _: None
        """Called with each request just before it is sent."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is going on and nothing waits."""
        return self.current is None and not self._waiting

    def new_job(self, kind: type[messages.AnyRequest]) -> str:
        """A unique name for a job of this session."""
        self._count += 1
        return f"{VERBS[kind]}-{self._count}"

    def submit(self, request: messages.AnyRequest) -> None:
        """Send the request now, or as soon as the engine is ready and free. A lost engine is restarted."""
        self._waiting.append(request)
        if self._is_lost:
            self.restart()
        self._send_next()

    def cancel(self, *, abandon: bool = False) -> None:
        """Stop the current job, or the start of the engine, and drop the jobs that wait.

        With ``abandon`` the findings of the job are dropped too, and an engine that is starting goes on.
        """
        self._waiting.clear()
        if self._state() is EngineState.STARTING and not abandon:
            self._engine.cancel("")
        if self.current is None:
            return
        self.is_abandoned = self.is_abandoned or abandon
        if not self._is_cancelling:
            self._is_cancelling = True
            self._engine.cancel(self.current.job)

    def restart(self) -> None:
        """Start a new engine process; the current job is dropped."""
        self._forget_current()
        self._is_ready = self._is_lost = False
        self._idle_deaths = 0
        self._engine.restart()

    def became_ready(self) -> None:
        """The engine process is up."""
        self._is_ready, self._is_lost = True, False
        self._send_next()

    def ended(self) -> None:
        """The current job has ended."""
        self._forget_current()
        self._idle_deaths = 0
        self._send_next()

    def lost(self, event: messages.WorkerLost) -> messages.AnyRequest | None:
        """The engine process died. It is restarted, unless it never became ready or keeps dying without any work.

        Returns: the request that has ended with it; None if there is none, or if it is sent again.
        """
        current, was_ready = self.current, self._is_ready
        self._forget_current()
        self._is_ready = False
        is_over = event.problem.code is not ErrorCode.CANCELLED or event.job in ("", current.job if current else "")
        if current is not None and not is_over:
            # The process was ended for an earlier job; this one had just been sent, so it is sent again.
            self._waiting.insert(0, current)
        self._idle_deaths = self._idle_deaths + 1 if current is None else 0
        if was_ready and self._idle_deaths < IDLE_DEATHS:
            self._engine.restart()
        else:
            self._waiting.clear()
            self._is_lost = True
            is_missing = not was_ready and event.problem.code in {ErrorCode.NOT_INSTALLED, ErrorCode.NOT_FOUND}
            self._missing_engine = event.problem if is_missing else None
        return current if is_over else None

    def activity(self, before: Activity) -> Activity:
        """The activity to show. Progress of a job that is already shown is kept."""
        request = self.current or next(iter(self._waiting), None)
        state = self._state()
        if request is None:
            found = Activity(state=state, missing_engine=self._missing_engine if self._is_lost else None)
            return before if before == found else found
        if request.job == before.job:
            return before if before.state is state else replace(before, state=state)
        return Activity(state=state, job=request.job, verb=VERBS[type(request)], started_s=self._clock())

    def _state(self) -> EngineState:
        if self._is_lost:
            return EngineState.LOST
        if not self._is_ready:
            return EngineState.STARTING
        if self.current is None:
            return EngineState.IDLE
        return EngineState.CANCELLING if self._is_cancelling else EngineState.BUSY

    def _send_next(self) -> None:
        if self._is_ready and self.current is None and self._waiting:
            self.current = self._waiting.pop(0)
            self.on_send(self.current)
            self._engine.send(self.current)

    def _forget_current(self) -> None:
        self.current = None
        self.is_abandoned = False
        self._is_cancelling = False
