"""Runs one request at a time in a worker process and yields its events."""

from __future__ import annotations

from collections.abc import Iterator

from ace_studio.jobs.client import WorkerClient
from ace_studio.records.messages import JOB_ENDS, AnyEvent, AnyRequest, WorkerLost


class WorkerExecutor:
    """Runs requests in a worker process; starts the process now, and again if it was lost."""

    def __init__(self, client: WorkerClient | None = None, *, grace_s: float = 3.0) -> None:
        self._client = client or WorkerClient()
        self._grace_s = grace_s
        self._client.start()

    def run(self, request: AnyRequest) -> Iterator[AnyEvent]:
        """Yield the events of the request and of the worker itself; the last one ends the job or is a WorkerLost.

        Closing the iterator early, as Ctrl-C does, cancels the job and waits until it has stopped.
        """
        if not self._client.is_running:
            # What the lost worker left in the queue is not about this request.
            while self._client.next_event(0) is not None:
                pass
            self._client.start()
        self._client.send(request)
        is_over = False
        try:
            for event in self._client.events():
                is_over = _ends(event, request.job)
                yield event
                if is_over:
                    return
        finally:
            if not is_over:
                self._stop(request.job)

    def _stop(self, job: str) -> None:
        """Make the job stop, and wait until it has."""
        self._client.cancel(job, grace_s=self._grace_s)
        while event := self._client.next_event(self._grace_s + 2.0):
            if _ends(event, job):
                return

    def close(self) -> None:
        """End the worker process."""
        self._client.close()

    def __enter__(self) -> WorkerExecutor:
        """Return the executor itself; its worker is starting already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the worker process."""
        self.close()


def _ends(event: AnyEvent, job: str) -> bool:
    return isinstance(event, WorkerLost) or (isinstance(event, JOB_ENDS) and event.job == job)
