"""Running a request in this process, in a thread: for notebooks and tests. Nothing protects from what it does."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping

from ace_studio.jobs.answer import ENGINE_MODULE, Handler, answer_request, load_handlers
from ace_studio.records.messages import AnyEvent, AnyRequest, Event


class InProcessExecutor:
    """Runs requests with a table of handlers (the engine's, if none is given), in a thread per request."""

    def __init__(self, handlers: Mapping[type[AnyRequest], Handler] | None = None) -> None:
        self._handlers = load_handlers(ENGINE_MODULE) if handlers is None else handlers
        self._cancelled: set[str] = set()

    def run(self, request: AnyRequest) -> Iterator[AnyEvent]:
        """Yield the events of the request as they come, the one that ends it last.

        Closing the iterator early cancels the job and waits until it has stopped, however long that takes.
        """
        events: queue.SimpleQueue[tuple[Event, bool]] = queue.SimpleQueue()

        def work() -> None:
            end = answer_request(
                request,
                self._handlers[type(request)],
                emit=lambda event: events.put((event, False)),
                is_cancelled=lambda: request.job in self._cancelled,
            )
            events.put((end, True))

        thread = threading.Thread(target=work, name="ace-job", daemon=True)
        thread.start()
        is_over = False
        try:
            while not is_over:
                event, is_over = events.get()
                yield event  # type: ignore[misc]
        finally:
            if not is_over:
                self.cancel(request.job)
            thread.join()
            self._cancelled.discard(request.job)

    def cancel(self, job: str) -> None:
        """Make the job stop at its next report."""
        self._cancelled.add(job)

    def close(self) -> None:
        """Nothing to give back."""
