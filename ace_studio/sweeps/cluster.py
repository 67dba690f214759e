"""The Dask cluster of a sweep: one of this machine's own, or one behind an address.

Dask distributes the jobs, tries a job elsewhere once if its worker dies, and says how each stands. Everything else,
such as what a job is and what it leaves, is in `sweeps.work` and `sweeps.running`.
"""

import importlib.util
import queue
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any

import dask
from distributed import CancelledError, Client, Event, Future, KilledWorker, LocalCluster
from distributed.client import ClosedClientError
from distributed.comm.addressing import get_address_host_port

from ace_studio.records.errors import AceError, ErrorCode, message_of
from ace_studio.records.private_folder import temporary_base
from ace_studio.records.sending import LeavingFile
from ace_studio.sweeps.work import SweepWorker, forget_starts, run_task

CONNECT_S = 10.0
LOOK_S = 5.0
"""Seconds between two looks at whether the scheduler still knows the jobs."""
RECONNECT_S = 24 * 3600.0
"""For so long the scheduler is looked for after its connection was lost: a night, or a laptop that sleeps."""
GPU, TIMING, MEMORY = "GPU", "timing", "memory"
"""Names of resources that workers may offer, as in ``dask worker --resources "GPU=1 timing=1 memory=16e9"`` (bytes)."""

_GONE = (OSError, TimeoutError, CancelledError, ClosedClientError, RuntimeError)
"""What Dask's client raises where its connection is lost or closed."""


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
        folder = opened.enter_context(TemporaryDirectory(prefix="ace-studio-dask-", dir=temporary_base()))
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

    A job has a name that follows from its content. At a scheduler behind an address every job is published as
    ``TOPIC-NAME``: it goes on while nobody is connected, and a later `Connection` with the same topic finds it.

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
        self._sent: dict[str, tuple[bytes, Mapping[str, LeavingFile], Mapping[str, float], int]] = {}
        self._contents: dict[str, Any] = {}
        """Hash -> the scheduler's name for this content, which a worker fetches once."""
        self._published = set[str]()
        """Jobs that the scheduler had when it was connected."""
        self._lost_s: float | None = None
        self._looked_s = time.monotonic()
        self._client = self._connect()

    def _connect(self) -> Client:
        client: Client | None = None
        try:
            if isinstance(self._cluster, str):
                get_address_host_port(self._cluster)  # a client for no address writes a traceback when it is closed
            client = Client(self._cluster, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
            client.subscribe_topic(self.topic, self._told)  # type: ignore[no-untyped-call]
            if self.is_elsewhere:
                begin = f"{self.topic}-"
                names: Sequence[str] = client.list_datasets()  # type: ignore[no-untyped-call]
                names = [name for name in names if name.startswith(begin)]
                self._published = {name.removeprefix(begin) for name in set(names) - _forgotten(client, names)}
        except (*_GONE, ValueError) as error:
            if client is not None:
                _close(client)
            raise AceError.of(
                ErrorCode.NOT_FOUND,
                f"No Dask scheduler answers at {self._cluster}",
                why=message_of(error),
                remedy="Check the address, and the TLS settings of Dask's configuration if the scheduler wants them.",
            ) from error
        return client

    @property
    def is_elsewhere(self) -> bool:
        """Whether the scheduler is not this process's own."""
        return isinstance(self._cluster, str)

    @property
    def is_lost(self) -> bool:
        """Whether the scheduler is being looked for."""
        return self._lost_s is not None

    def _told(self, event: tuple[float, Any]) -> None:
        self._news.put(("", event[1]))

    @property
    def workers(self) -> Mapping[str, Mapping[str, Any]]:
        """The workers by address, with their names and resources; none while the connection is lost."""
        found: dict[str, Mapping[str, Any]] = {}
        with suppress(*_GONE):
            found = self._client.scheduler_info(n_workers=-1)["workers"]
        return found

    def resource(self, name: str) -> float:
        """The most that a worker offers of a resource; 0 if none offers any."""
        return max((worker.get("resources", {}).get(name, 0.0) for worker in self.workers.values()), default=0.0)

    def send(
        self, job: str, packed: bytes, files: Mapping[str, LeavingFile], resources: Mapping[str, float], *, place: int
    ) -> None:
        """Give a job to the scheduler, which may have it already from an earlier call.

        ``files`` are those that it needs by their hash, each of which is sent once; jobs with a lower ``place`` run
        earlier.
        """
        self._sent[job] = packed, files, resources, place
        if not self.is_lost:
            with self._noticing_loss():
                self._submit(job)

    def forget_others(self) -> None:
        """End the jobs of earlier calls that were not sent again: their recipe or code has changed since."""
        with self._noticing_loss():
            for job in self._published - self._sent.keys():
                name = f"{self.topic}-{job}"
                self._client.cancel([self._client.get_dataset(name)], force=True)  # type: ignore[no-untyped-call]
                self._client.unpublish_dataset(name)

    def _submit(self, job: str) -> None:
        key = f"{self.topic}-{job}"
        if job in self._published:
            future: Future[bytes] = self._client.get_dataset(key)
        else:
            packed, files, resources, place = self._sent[job]
            for digest, file in files.items():
                if digest not in self._contents:
                    self._contents |= self._client.scatter({digest: _content_of(file)})  # type: ignore[no-untyped-call]
            blobs = {digest: self._contents[digest] for digest in files}
            future = self._client.submit(
                run_task, packed, blobs, key=key, resources=dict(resources) or None, priority=-place, pure=False
            )
            if self.is_elsewhere:
                # What is published is kept by the scheduler while nobody is connected to it.
                self._client.publish_dataset(future, name=key, override=True)
        self._futures[job] = future
        future.add_done_callback(lambda done: self._ended(job, done))  # type: ignore[no-untyped-call]

    def _ended(self, job: str, future: Future[bytes]) -> None:
        """Called in a thread of Dask's; the client may not be used here."""
        self._news.put((job, future))

    def take(self, timeout_s: float) -> tuple[str, Any, BaseException | None] | None:
        """The next news.

        Raises: AceError(NOT_FOUND) if the connection was lost and could not be made again within `RECONNECT_S`.
        """
        if self.is_lost:
            self._reconnect()
            return None
        if time.monotonic() - self._looked_s > LOOK_S:
            self._look()
        try:
            job, found = self._news.get(timeout=timeout_s)
        except queue.Empty:
            if self._client.status not in {"running", "connecting", "newly-created"}:
                self._lose()
            return None
        if not job:
            return "", found, None
        future = self._futures.get(job)
        if future is None or future is not found:
            return None  # of the connection before
        if future.status == "error":
            return job, None, future.exception()  # type: ignore[no-untyped-call]
        if future.status == "finished":
            with suppress(*_GONE):
                return job, future.result(), None
        self._lose()  # the connection is, or a worker died that had the job's files or its answer
        return None

    def _look(self) -> None:
        """Send the jobs again if the scheduler forgot one, which it may do before anybody waits for the job."""
        self._looked_s = time.monotonic()
        with self._noticing_loss():
            if _forgotten(self._client, [f"{self.topic}-{job}" for job in self._futures]):
                self._lose()

    def done(self, job: str) -> None:
        """Let the scheduler forget a job."""
        future, _ = self._futures.pop(job), self._sent.pop(job)
        with suppress(Exception):  # it only frees memory there, and the connection may be gone
            if self.is_elsewhere:
                self._client.unpublish_dataset(f"{self.topic}-{job}")
                forget_starts(self.topic, job, self._client)
            future.release()  # type: ignore[no-untyped-call]

    @contextmanager
    def _noticing_loss(self) -> Iterator[None]:
        try:
            yield
        except _GONE:
            self._lose()

    def _lose(self) -> None:
        self._lost_s = time.monotonic()
        _close(self._client)

    def _reconnect(self) -> None:
        """Look for the scheduler once; it has the jobs still, or gets them anew if it was started again."""
        assert self._lost_s is not None
        try:
            self._client = self._connect()
        except AceError:
            if time.monotonic() - self._lost_s > RECONNECT_S:
                raise
            time.sleep(1.0)
            return
        self._lost_s = None
        self._contents.clear()
        with self._noticing_loss():
            for job in tuple(self._sent):
                self._submit(job)

    def finished(self) -> Iterator[tuple[str, bytes]]:
        """The jobs whose answer is there and was not taken yet."""
        for job, future in tuple(self._futures.items()):
            if future.status == "finished":
                with suppress(*_GONE):
                    yield job, future.result(timeout=5)

    def cancel(self) -> None:
        """Ask the running jobs to stop, and take the waiting ones back."""
        with suppress(Exception):  # the scheduler may be gone, and its jobs with it
            Event(self.topic, client=self._client).set()  # type: ignore[no-untyped-call]
            self._client.cancel(list(self._futures.values()), force=True)  # type: ignore[no-untyped-call]

    def close(self, *, is_kept: bool) -> None:
        """Disconnect. If ``is_kept``, the jobs go on there; else the scheduler forgets them."""
        for job in () if is_kept else tuple(self._futures):
            self.done(job)
        _close(self._client)


def _content_of(file: LeavingFile) -> bytes:
    """What a file holds now; nothing if it is gone or another has its place, which its hash tells where it arrives."""
    with suppress(OSError), file.open() as stream:
        return stream.read()
    return b""


def _forgotten(client: Client, names: Sequence[str]) -> set[str]:
    """Those of the jobs that the scheduler cannot run any more, because a worker died with the only copy of a file."""
    tasks: Any = client.scheduler
    states: dict[str, str | None] = client.sync(tasks.get_task_status, keys=names)  # type: ignore[no-untyped-call]
    return {name for name, state in states.items() if state in {None, "released", "forgotten"}}


def _close(client: Client) -> None:
    with suppress(Exception):  # what is left of a connection may fail in any way
        client.close(timeout=2)  # type: ignore[no-untyped-call]


def is_lost(error: BaseException | None) -> bool:
    """Whether a job ended because its worker died, on a second worker too."""
    return isinstance(error, KilledWorker)
