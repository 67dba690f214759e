"""The link to the engine process: requests go out, events come in as queued signals on the main thread.

Two threads, because a thread that waits for events cannot send, and because ending a process may take seconds that
the main thread does not have.
"""

from __future__ import annotations

import queue
from collections.abc import Callable

from PySide6.QtCore import QObject, QThread, Signal

from ace_studio.jobs.client import WorkerClient
from ace_studio.records.messages import AnyRequest, ModelCaptured


class _Events(QThread):
    """Waits for events of the client and emits them."""

    received = Signal(object)

    def __init__(self, client: WorkerClient, parent: QObject) -> None:
        super().__init__(parent)
        self._client = client

    def run(self) -> None:
        from ace_studio.gui.ops.facts import prepare  # noqa: PLC0415 - not needed for the first picture

        for event in self._client.events():
            if isinstance(event, ModelCaptured):
                prepare(event.graph)  # here nobody waits for it
            self.received.emit(event)


class _Commands(QThread):
    """Calls the client, one call after the other, off the main thread."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def put(self, call: Callable[[], None] | None) -> None:
        self._calls.put(call)

    def run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


class EngineThread(QObject):
    """Owns the client of the engine process; the session's `EngineLink`."""

    received = Signal(object)
    """An event of the engine, on the thread that this object lives on."""

    def __init__(
        self,
        client: WorkerClient,
        *,
        interpreter: Callable[[], str] = str,
        grace_s: Callable[[], float] = lambda: 3.0,
        parent: QObject | None = None,
    ) -> None:
        """Start the threads, not yet the process.

        Args:
            client: the engine process.
            interpreter: asked at every restart which Python to use; empty for the one that is set.
            grace_s: asked at every cancel how long a job may take to stop by itself.
            parent: owner of this object.
        """
        super().__init__(parent)
        self._client = client
        self._interpreter = interpreter
        self._grace_s = grace_s
        self._events = _Events(client, self)
        self._commands = _Commands(self)
        # A signal of a thread that arrives at an object of the main thread is queued: it waits for the event loop.
        self._events.received.connect(self.received)
        self._events.start()
        self._commands.start()
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """Process id of the engine, once it has been started."""
        return self._client.pid

    def start(self) -> None:
        """Start the process and return at once."""
        self._commands.put(self._client.start)

    def send(self, request: AnyRequest) -> None:
        """Send a request."""
        self._commands.put(lambda: self._client.send(request))

    def cancel(self, job: str) -> None:
        """Ask the job to stop, then end the process. Without a job, end a process that is starting."""
        if not job:
            self._commands.put(self._client.kill)
            return
        grace_s = self._grace_s()
        self._commands.put(lambda: self._client.cancel(job, grace_s=grace_s))

    def restart(self) -> None:
        """Start a new process, ending the old one."""
        interpreter = self._interpreter()
        self._commands.put(lambda: self._client.restart(interpreter))

    def close(self) -> None:
        """End the process and the threads, and wait for them."""
        if self._is_closed:
            return
        self._is_closed = True
        self._events.received.disconnect(self.received)
        self._commands.put(self._client.close)
        self._commands.put(None)
        self._commands.wait()
        self._events.wait()
