"""The Dask cluster of a sweep: one of this machine's own, or one behind an address.

Dask distributes the jobs, tries a job elsewhere once if its worker dies, and says how each stands. Everything else,
such as what a job is and what it leaves, is in `sweeps.work` and `sweeps.running`.
"""

from __future__ import annotations

import importlib.util
import queue
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Event, Future, KilledWorker, LocalCluster
from distributed.comm import CommClosedError

from ace_studio.records.errors import AceError, ErrorCode, message_of
from ace_studio.sweeps.work import SweepWorker, run_task

CONNECT_S = 10.0
RECONNECT_S = 60.0
"""For so long the scheduler is looked for after its connection was lost."""
GPU, TIMING = "GPU", "timing"
"""Names of resources that workers may offer, as in ``dask worker --resources "GPU=1 timing=1"``."""

Told = Mapping[str, Any]
"""Progress of one job, as `sweeps.work` sends it."""


def scheduler_settings() -> dict[str, Any]:
    """Dask's settings where the scheduler is this process's own."""
    # A worker that died is not to blame for its job the first time; the second time it is.
    settings: dict[str, Any] = {"distributed.scheduler.allowed-failures": 1}
    # Dask's pages have no password; without routes its HTTP servers answer nothing.
    return settings | {f"distributed.{one}.http.routes": [] for one in ("scheduler", "worker", "nanny")}


@contextmanager
def local_cluster(cores: Sequence[list[int]]) -> Iterator[LocalCluster]:
    """A cluster of this machine with one process per entry of ``cores``.

    Only this user can talk to it: the connections are encrypted with a key that exists for as long as the cluster.
    """
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="ace-studio-dask-"))
        opened.enter_context(dask.config.set(scheduler_settings()))
        cluster = opened.enter_context(
            LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=len(cores),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                security=importlib.util.find_spec("cryptography") is not None or None,
                memory_limit=0,  # the engine's processes are not the worker's, and have their own watch
                local_directory=folder,
                silence_logs=50,
                resources={TIMING: 1},
            )
        )
        with Client(cluster) as client:  # type: ignore[no-untyped-call]
            client.register_plugin(SweepWorker({str(at): list(one) for at, one in enumerate(cores)}))
            yield cluster


class Connection:
    """A connection to the scheduler, the jobs that were given to it, and the queue of what comes back.

    `take` gives ``(job, answer, error)`` for a job that ended, ``("", told, None)`` for progress, and None after a wait
    without news. A lost connection is made again; the jobs go on meanwhile, and none runs twice.
    """

    def __init__(self, cluster: Any, topic: str) -> None:
        """Connect to a cluster of this process, or to an address.

        Raises: AceError(NOT_FOUND) if no scheduler answers.
        """
        self._cluster, self.topic = cluster, topic
        self._news: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._futures: dict[str, Future[bytes]] = {}
        self._sent: dict[str, tuple[bytes, Mapping[str, Path], Mapping[str, float]]] = {}
        self._contents: dict[str, Any] = {}
        """Hash -> the scheduler's name for this content, which a worker fetches once."""
        self._client = self._connect()

    def _connect(self) -> Client:
        try:
            client = Client(self._cluster, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, TimeoutError, ValueError) as error:
            raise AceError.of(
                ErrorCode.NOT_FOUND,
                f"No Dask scheduler answers at {self._cluster}",
                why=message_of(error),
                remedy="Check the address, and the TLS settings of Dask's configuration if the scheduler wants them.",
            ) from error
        client.subscribe_topic(self.topic, self._told)  # type: ignore[no-untyped-call]
        return client

    def _told(self, event: tuple[float, Any]) -> None:
        self._news.put(("", event[1]))

    @property
    def workers(self) -> Mapping[str, Mapping[str, Any]]:
        """The workers by address, with their names and resources."""
        found: dict[str, Mapping[str, Any]] = self._client.scheduler_info(n_workers=-1)["workers"]
        return found

    def has_resource(self, name: str) -> bool:
        """Whether any worker offers a resource."""
        return any(name in worker.get("resources", {}) for worker in self.workers.values())

    def send(self, job: str, packed: bytes, files: Mapping[str, Path], resources: Mapping[str, float]) -> None:
        """Give a job to the scheduler; ``files`` are those that it needs by their hash, each of which is sent once."""
        self._sent[job] = packed, files, resources
        self._submit(job)

    def _submit(self, job: str) -> None:
        packed, files, resources = self._sent[job]
        for digest, path in files.items():
            if digest not in self._contents:
                self._contents |= self._client.scatter({digest: path.read_bytes()})  # type: ignore[no-untyped-call]
        blobs = {digest: self._contents[digest] for digest in files}
        key = f"{self.topic}-{job}"
        future = self._client.submit(
            run_task, packed, blobs, key=key, resources=dict(resources) or None, priority=-int(job), pure=False
        )
        if isinstance(self._cluster, str):
            # What is published is kept by the scheduler while nobody is connected to it.
            self._client.publish_dataset(future, name=key, override=True)
        self._futures[job] = future
        future.add_done_callback(lambda done: self._ended(job, done))  # type: ignore[no-untyped-call]

    def _ended(self, job: str, future: Future[bytes]) -> None:
        """Called in a thread of Dask's; the client may not be used here."""
        self._news.put((job, future))

    def take(self, timeout_s: float) -> tuple[str, Any, BaseException | None] | None:
        """The next news. Raises: AceError(NOT_FOUND) if the connection was lost and could not be made again."""
        try:
            job, found = self._news.get(timeout=timeout_s)
        except queue.Empty:
            if self._client.status not in {"running", "connecting", "newly-created"}:
                self._reconnect()
            return None
        if not job:
            return "", found, None
        future = self._futures.get(job)
        if future is None or future is not found:
            return None  # of the connection before
        if future.status == "error":
            return job, None, future.exception()  # type: ignore[no-untyped-call]
        if future.status == "finished":
            with suppress(CommClosedError, OSError, TimeoutError):
                return job, future.result(), None
        self._reconnect()  # the future is cancelled or lost, because the connection is
        return None

    def done(self, job: str) -> None:
        """Let the scheduler forget a job."""
        future, _ = self._futures.pop(job), self._sent.pop(job)
        with suppress(Exception):  # it only frees memory there, and the connection may be gone
            if isinstance(self._cluster, str):
                self._client.unpublish_dataset(f"{self.topic}-{job}")
            future.release()  # type: ignore[no-untyped-call]

    def _reconnect(self) -> None:
        with suppress(Exception):  # what is left of the old connection may fail in any way
            self._client.close(timeout=1)  # type: ignore[no-untyped-call]
        self._contents.clear()
        until = time.monotonic() + RECONNECT_S
        while True:
            try:
                self._client = self._connect()
                break
            except AceError:
                if time.monotonic() > until:
                    raise
                time.sleep(1.0)
        for job in tuple(self._futures):
            self._submit(job)

    def finished(self) -> Iterator[tuple[str, bytes]]:
        """The jobs whose answer is there and was not taken yet."""
        for job, future in tuple(self._futures.items()):
            if future.status == "finished":
                with suppress(CommClosedError, OSError, TimeoutError):
                    yield job, future.result(timeout=5)

    def cancel(self) -> None:
        """Ask the running jobs to stop, and take the waiting ones back."""
        with suppress(Exception):  # the scheduler may be gone, and its jobs with it
            Event(self.topic, client=self._client).set()  # type: ignore[no-untyped-call]
            self._client.cancel(list(self._futures.values()), force=True)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Forget everything at the scheduler, and disconnect."""
        for job in tuple(self._futures):
            self.done(job)
        with suppress(Exception):  # as above
            self._client.close(timeout=2)  # type: ignore[no-untyped-call]


def is_lost(error: BaseException | None) -> bool:
    """Whether a job ended because its worker died, on a second worker too."""
    return isinstance(error, KilledWorker)
