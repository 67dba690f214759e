"""Running one request to its end and handing out its events. See `in_process` for the one without a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ace_studio.jobs.client import WorkerClient
from ace_studio.records.messages import JOB_ENDS, AnyEvent, AnyRequest, WorkerLost

ENDS = (*JOB_ENDS, WorkerLost)
"""The last event of a request is one of these."""


class Executor(Protocol):
    """Runs requests, one at a time."""

    def run(self, request: AnyRequest) -> Iterator[AnyEvent]:
        """Yield the events of the request as they come; the last is one of `ENDS`. Leaving early cancels the job."""

    def cancel(self, job: str) -> None:
        """Make a job stop; its last event, in `run`, says that it has. May be called from any thread."""

    def close(self) -> None:
        """Give everything back."""


class WorkerExecutor:
    """Runs requests in a worker process, which is started now and started again if it was lost."""

    def __init__(self, client: WorkerClient | None = None, *, grace_s: float = 3.0) -> None:
        self._client = client or WorkerClient()
        self._grace_s = grace_s
        self._client.start()

    def run(self, request: AnyRequest) -> Iterator[AnyEvent]:
        """Yield the events of the request (and of the worker itself); the last is one of `ENDS`.

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

    def cancel(self, job: str) -> None:
        """Make the job stop; its last event says that it has."""
        self._client.cancel(job, grace_s=self._grace_s)

    def _stop(self, job: str) -> None:
        """Make the job stop, and wait until it has."""
        self.cancel(job)
        while event := self._client.next_event(self._grace_s + 2.0):
            if _ends(event, job):
                return

    def close(self) -> None:
        """End the worker process."""
        self._client.close()

    def __enter__(self) -> WorkerExecutor:
        """The executor itself; its worker is starting already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the worker process."""
        self.close()


def _ends(event: AnyEvent, job: str) -> bool:
    return isinstance(event, WorkerLost) or (isinstance(event, JOB_ENDS) and event.job == job)
