"""The link to the engine process: requests go out, events come in as queued signals on the main thread.

Two threads, because a thread that waits for events cannot send, and because ending a process may take seconds that
the main thread does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, QThread, Signal

from ace_studio.records.messages import AnyRequest, JobFinished, ModelCaptured, engine_of

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from ace_studio.jobs.client import WorkerClient


class _Events(QThread):
    """Waits for events of the client and emits them."""

    received = Signal(object)

    def follow(self, client: Future[WorkerClient]) -> None:
        """Start the thread."""
        self._client = client
        self.start()

    def run(self) -> None:
        from ace_studio.gui.ops.facts import prepare, prepare_result  # noqa: PLC0415 - not needed for the first picture

        for event in self._client.result().events():
            if isinstance(event, ModelCaptured):
                prepare(event.graph)  # here nobody waits for it
            elif isinstance(event, JobFinished) and event.result is not None:
                prepare_result(event.result)
            self.received.emit(event)


class EngineThread(QObject):
    """Owns the client of the engine process; the session's `EngineLink`."""

    received = Signal(object)
    """An event of the engine, on the thread that this object lives on."""

    def __init__(
        self,
        make_client: Callable[[], WorkerClient],
        *,
        interpreter: Callable[[], str] = str,
        grace_s: Callable[[], float] = lambda: 3.0,
        parent: QObject | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            make_client: called by `start`, off the main thread: the client's modules take a while to import.
            interpreter: asked at every restart, and at every request to this machine, which Python to use; empty for
                the one that is set. A process of another one is replaced.
            grace_s: asked at every cancel how long a job may take to stop by itself.
            parent: owner of this object.
        """
        super().__init__(parent)
        self._make_client = make_client
        self._interpreter = interpreter
        self._grace_s = grace_s
        self._events = _Events(self)
        self._commands: ThreadPoolExecutor | None = None
        """None before `start` and after `close`."""
        # A signal of a thread that arrives at an object of the main thread is queued: it waits for the event loop.
        self._events.received.connect(self.received)

    def start(self) -> None:
        """Start the threads and the process, and return at once."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - not needed for the first picture

        self._commands = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ace-commands")
        self._client = self._commands.submit(self._make_client)
        self._events.follow(self._client)
        self._call(lambda client: client.start())

    def send(self, request: AnyRequest) -> None:
        """Send a request."""
        interpreter = "" if engine_of(request).host else self._interpreter()

        def send(client: WorkerClient) -> None:
            client.use(interpreter)
            client.send(request)

        self._call(send)

    def cancel(self, job: str) -> None:
        """Ask the job to stop, then end the process. Without a job, end a process that is starting."""
        grace_s = self._grace_s()
        self._call(lambda client: client.cancel(job, grace_s=grace_s) if job else client.kill())

    def restart(self) -> None:
        """Start a new process, ending the old one."""
        interpreter = self._interpreter()
        self._call(lambda client: client.restart(interpreter))

    def _call(self, call: Callable[[WorkerClient], object]) -> None:
        """Call the client, one call after the other, off the main thread; what it raises is logged.

        Nothing is called before `start` and after `close`: signals of the settings may come at any time.
        """
        if self._commands is not None:
            self._commands.submit(lambda: call(self._client.result())).add_done_callback(lambda done: done.result())

    def close(self) -> None:
        """End the process and the threads, and wait for them. Events that were not received yet are dropped."""
        if self._commands is None:
            return
        self._events.received.disconnect(self.received)
        self._call(lambda client: client.close())
        commands, self._commands = self._commands, None
        commands.shutdown()
        self._events.wait()
        QCoreApplication.removePostedEvents(self)  # what is queued still arrives, perhaps after the window is deleted
