"""Runs the jobs of all tools: one engine process, one job at a time, and only what the user trusts."""

import shlex
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from msgspec.structs import replace

from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.jobs.sweep_process import SweepProcess
from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.paths import paths_in
from ace_studio.records.roots import Roots, present
from ace_studio.records.sending import Word
from ace_studio.records.sweeps import JobAdvanced, SweepEnded, SweepEvent, SweepJob, SweepOrder
from ace_studio.session.kept.trust import TrustStore, hash_in


class AgentRunner:
    """Runs requests with the trust that the user has given; it never gives any. The engine starts with the first."""

    def __init__(
        self,
        store: TrustStore,
        make_client: Callable[[], WorkerClient],
        roots: Roots,
        *,
        contain: bool | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        """``hosts``: other machines that the user lets recipes name; files go to no other."""
        self._store = store
        self.roots = roots
        self._contain = contain
        self._word = Word(hosts=tuple(hosts))
        self._sweep: SweepProcess | None = None
        self._make_client = make_client
        self._client: WorkerClient | None = None
        self._executor: WorkerExecutor | None = None
        self._numbers = count(1)
        self._job = ""
        self._cancelled = threading.Event()
        self._tell: Callable[[messages.Progress], None] | None = None
        self._recipe = ""

    def begin(self, tell: Callable[[messages.Progress], None], *, recipe: str = "") -> None:
        """Begin a call of a tool: report its progress to ``tell``. ``recipe``: the recipe that it names, if any."""
        self._tell, self._recipe = tell, recipe
        self._job = ""
        self._cancelled.clear()

    def cancel(self) -> None:
        """Cancel what the call is doing; may come from any thread."""
        self._cancelled.set()
        if self._client is not None and self._job:
            self._client.cancel(self._job)
        if self._sweep is not None:
            self._sweep.stop()

    def run(self, request: messages.AnyRequest) -> Iterator[messages.AnyEvent]:
        """Yield the events of the request. What trusted folders hold is trusted as it is asked for."""
        if refused := self._refused(messages.engine_of(request).host, _read_for(request)):
            yield messages.JobFailed(job=request.job, problems=refused)
            return
        while True:
            # A name for each job: the end of a cancelled one must not reach the next.
            sent = replace(self._with_trust(request), job=f"{request.job}-{next(self._numbers)}")
            is_covered = False
            for event in self._events(sent):
                is_covered = isinstance(event, messages.JobFailed) and self._cover(event.problems)
                if not is_covered:
                    yield self._told(event)
            if not is_covered:
                return

    def sweep(
        self, order: SweepOrder, on_event: Callable[[SweepEvent], None], *, jobs: Iterable[SweepJob] = ()
    ) -> SweepEnded:
        """Run a sweep of these jobs in a process of its own: a worker of Dask must not inherit the client's stdout."""
        for job in jobs:
            found = (path for pattern in job.files for path in Path(job.folder).glob(pattern))
            if refused := self._refused(job.recipe.engine.host, (*paths_in(job.recipe, Path(job.folder)), *found)):
                return SweepEnded(problems=refused)
        while True:
            order = replace(order, trusted_sha256=self._store.hashes, word=self._word, contain=self._contain)
            ended = self._swept(order, on_event)
            rows = ended.report.rows if ended.report is not None else ()
            refused = tuple(one.error for one in rows if one.error and one.error.code is ErrorCode.UNTRUSTED)
            if not refused or self._cancelled.is_set() or not self._cover(refused):
                break
        if ended.report is None:
            return ended
        told = tuple(replace(one, error=self._refusal(one.error)) if one.error else one for one in rows)
        return replace(ended, report=replace(ended.report, rows=told))

    def allow(self, host: str) -> None:
        """Raises: AceError(UNTRUSTED) if the user has not allowed this host for tools."""
        if host and host not in self._word.hosts:
            raise AceError.of(
                ErrorCode.UNTRUSTED,
                f"This needs another machine, {host}",
                why="files would be sent there, which the user has not allowed for tools",
                remedy=f"The user starts the server with: ace-studio mcp --host {host}",
            )

    def _refused(self, host: str, paths: Iterable[Path]) -> tuple[Problem, ...]:
        """Why something may not run that needs this host and these files; empty if it may."""
        try:
            self.allow(host)
            for path in paths:
                present.get().readable(path)
        except AceError as error:
            return error.problems
        return ()

    def told(self, event: messages.Progress) -> None:
        """Tell the progress of work in this process. Raises: AceError(CANCELLED) if the call was cancelled."""
        if self._cancelled.is_set():
            raise AceError.of(ErrorCode.CANCELLED, "The call was cancelled")
        if self._tell is not None:
            self._tell(event)

    def _swept(self, order: SweepOrder, on_event: Callable[[SweepEvent], None]) -> SweepEnded:
        events: SimpleQueue[SweepEvent | SweepEnded] = SimpleQueue()
        self._sweep = SweepProcess(order, events.put)
        if self._cancelled.is_set():
            self._sweep.stop()
        while not isinstance(event := events.get(), SweepEnded):
            if self._tell is not None:
                self._tell(_progress(event))
            on_event(event)
        self._sweep = None
        return event

    def close(self) -> None:
        """The request is over; the process stays."""

    def end(self) -> None:
        """End the engine process."""
        if self._executor is not None:
            self._executor.close()

    def _events(self, request: messages.AnyRequest) -> Iterator[messages.AnyEvent]:
        if self._executor is None:
            self._client = self._make_client()
            self._executor = WorkerExecutor(self._client)
        self._job = request.job
        if self._cancelled.is_set():
            yield messages.JobCancelled(job=request.job)
            return
        is_asked = False
        for event in self._executor.run(request):
            if self._cancelled.is_set() and not is_asked and self._client is not None:
                is_asked = True
                self._client.cancel(request.job)  # again: before it was sent there was nothing to cancel
            if isinstance(event, messages.Progress) and self._tell is not None:
                self._tell(event)
            yield event

    def _with_trust(self, request: messages.AnyRequest) -> messages.AnyRequest:
        if isinstance(request, messages.TraceRequest | messages.CatchRequest):
            request = replace(request, trust_all=False, trusted_sha256=self._store.hashes)
        if isinstance(request, messages.TraceRequest):
            return replace(request, word=self._word)
        return request

    def _cover(self, problems: tuple[Problem, ...]) -> bool:
        """Whether all that was refused lies in folders that the user trusts, and is trusted from now on."""
        new = [one for one in problems if not self._store.is_trusted(hash_in(one))]
        return bool(new) and all(
            one.code is ErrorCode.UNTRUSTED and self._store.trust_covered(one.where, hash_in(one)) for one in problems
        )

    def _told(self, event: messages.AnyEvent) -> messages.AnyEvent:
        """The event; a refusal says how the user gives trust."""
        if not isinstance(event, messages.JobFailed):
            return event
        return replace(event, problems=tuple(map(self._refusal, event.problems)))

    def _refusal(self, problem: Problem) -> Problem:
        if problem.code is not ErrorCode.UNTRUSTED or not hash_in(problem):
            return problem
        return replace(problem, remedy=_remedy(self._recipe or problem.where))


def _progress(event: SweepEvent) -> messages.Progress:
    if isinstance(event, JobAdvanced):
        return messages.Progress(job=event.job, phase=messages.Phase(event.phase), detail=f"job {event.job}")
    phase = messages.Phase.START if event.row is None else messages.Phase.EXPORT
    return messages.Progress(job="", phase=phase, detail=f"{event.done} of {event.total} jobs ended")


def _read_for(request: messages.AnyRequest) -> Iterator[Path]:
    """What the engine is asked to read. Arguments of a tool that are paths were judged before (`tools.Use`)."""
    match request:
        case messages.InspectRequest(path=path):
            yield Path(path)
        case messages.TraceRequest(recipe=recipe, folder=folder):
            yield from paths_in(recipe, Path(folder))
            if isinstance(request, messages.FixRequest) and request.file:
                yield Path(request.file)
        case _:
            pass


def _remedy(path: str) -> str:
    return (
        "No tool gives trust; ask the user. The user opens the file in the window and presses Trust, or writes in a "
        f"terminal: ace-studio trust --add {shlex.quote(path)}"
    )
