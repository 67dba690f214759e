"""The engine that a request names: the one of this machine, or one on a host. Either way the same messages."""

from collections.abc import Callable
from typing import Any

from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.hosts.link import HostLink
from ace_studio.records import containment, messages
from ace_studio.records.recipes.recipe import EngineChoice, LimitsChoice


class EngineClient(WorkerClient):
    """A worker of this machine, and links to hosts for the requests that name one.

    A host that cannot be reached, or an engine that dies there, ends its job with a JobFailed: the worker here is not
    lost by it.
    """

    def __init__(
        self,
        interpreter: str = "",
        *,
        contain: Callable[[], bool | None] = lambda: None,
        limits: Callable[[], LimitsChoice] | None = None,
        is_lazy: bool = False,
        **options: Any,
    ) -> None:
        """Store the options; nothing is started yet.

        Args:
            interpreter: As in `WorkerClient`, of the worker here.
            contain: As in `WorkerClient`.
            limits: As in `WorkerClient`.
            is_lazy: Start the worker here with its first request: a command that goes to a host needs none.
            options: More options of `WorkerClient`, of the worker here.
        """
        super().__init__(interpreter, contain=contain, limits=limits, **options)
        self._is_lazy = is_lazy
        self._given_limits = limits
        self._links: dict[EngineChoice, HostLink] = {}

    @property
    def is_running(self) -> bool:
        """Whether a worker here is starting or alive; one that waits for its first request counts."""
        return super().is_running or (self._is_lazy and self._worker is None)

    def start(self) -> None:
        """Start the worker here, unless it waits for its first request."""
        if not (self._is_lazy and self._worker is None):
            super().start()

    def send(self, request: messages.AnyRequest) -> None:
        """Send a request to the engine that it names."""
        engine = messages.engine_of(request)
        if not engine.host:
            with self._lock:
                if self._is_lazy and self._worker is None:
                    self._worker = self._new_worker()
            super().send(request)
            return
        code = messages.code_of(request)
        choice = self._contain() if code is not None else None
        elsewhere = containment.from_elsewhere(code) if code is not None and choice is None else ""
        limits = self._given_limits() if self._given_limits is not None else None
        while not self._link(engine).send(request, contain=choice, is_strange=bool(elsewhere), limits=limits):
            with self._lock:
                self._links.pop(engine, None)

    def cancel(self, job: str, *, grace_s: float = 3.0) -> None:
        """Ask a job to stop, wherever it is."""
        with self._lock:
            links = [link for link in self._links.values() if link.has(job)]
        for link in links:
            link.cancel(job, grace_s)
        if not links:
            super().cancel(job, grace_s=grace_s)

    def restart(self, interpreter: str = "") -> None:
        """Start another worker here, and let go of the engines on hosts."""
        self._close_links()
        super().restart(interpreter)

    def kill(self) -> None:
        """End all engines, now."""
        self._close_links()
        super().kill()

    def close(self, *, timeout_s: float = 1.0) -> None:
        """End all engines, and the iteration of events."""
        self._close_links()
        super().close(timeout_s=timeout_s)

    def _link(self, engine: EngineChoice) -> HostLink:
        with self._lock:
            if engine not in self._links:
                self._links[engine] = HostLink(engine, self._events.put)
            return self._links[engine]

    def _close_links(self) -> None:
        with self._lock:
            links, self._links = list(self._links.values()), {}
        for link in links:
            link.close()
