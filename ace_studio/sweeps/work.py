"""What runs on a Dask worker: one job of a sweep, in an engine process that stays for the next one.

Dask calls `run_task` by its name. What it gets and gives is bytes (msgspec), so that a worker needs the same ACE Studio
and nothing of the user's. The engine process is another one than the worker's: a model that crashes it ends one job.
"""

import atexit
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import psutil
from distributed import Client, Event, Queue, Worker, WorkerPlugin, get_worker
from msgspec.structs import replace

from ace_studio.jobs.engines import EngineClient
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.records import messages
from ace_studio.records.bundle import Bundle, unpack
from ace_studio.records.errors import AceError, ErrorCode, Problem, message_of
from ace_studio.records.outside import sent_along
from ace_studio.records.private_folder import temporary_base, timing_lock
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.safe_file import leads_out, open_inside
from ace_studio.records.sending import Word
from ace_studio.records.sweeps import JobAdvanced
from ace_studio.session.kept.folders import UserFolders

PROGRESS_S = 0.5
CANCEL_POLL_S = 1.0
_LARGEST_ANSWER_BYTES = 2_000_000_000


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One job as it is sent to a worker."""

    job: str
    """Its name, which follows from its content: its number may change between two calls of a sweep."""
    topic: str
    """Dask's name for the events of this sweep, and for the event that cancels it."""
    recipe: Recipe
    folder: str = ""
    """Folder of the recipe on this machine; empty: the files are in ``bundle``."""
    output: str = ""
    """Folder for what the job writes on this machine; empty: it is sent back."""
    bundle: Bundle | None = None
    trust: bool = False
    trusted_sha256: tuple[str, ...] = ()
    """Contents that may run without that, and what may be sent."""
    word: Word = Word()
    """What the user said may be sent on from the worker."""
    interpreter: str = ""
    """Python of the engine; empty: the one that runs the worker."""
    contain: bool | None = None
    """Whether the engine is contained, as in `WorkerClient`."""
    most_starts: int = 0
    """The job is given up if it was started so often already; 0: the scheduler counts."""


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker sends back."""

    host: str
    seconds: float
    """From the request to its end; without the wait for a worker."""
    problems: tuple[Problem, ...] = ()
    result: bytes = b""
    """``result.json``; empty if there is none."""
    files: dict[str, bytes] = {}
    """What the job wrote, by its path relative to the output folder; empty if it wrote into the sweep's."""
    is_lost: bool = False
    """Whether it was given up, because the workers that it was started on died."""


class SweepWorker(WorkerPlugin):
    """Keeps a worker of a local cluster to cores of its own, so that jobs do not disturb each other's times."""

    def __init__(self, cores: Mapping[str, list[int]]) -> None:
        self._cores = cores

    def setup(self, worker: Worker) -> None:
        """Pin the process, from which the engine inherits; where the system cannot, nothing happens."""
        own, process = self._cores.get(str(worker.name)), psutil.Process()
        if own and hasattr(process, "cpu_affinity"):
            process.cpu_affinity(own)

    def teardown(self, worker: Worker) -> None:
        """End a job that still runs, because a closing worker would wait for it."""
        del worker
        _engine.kill()


class _Engine:
    """The engine process of this worker: started by the first job, kept for the next ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: EngineClient | None = None
        self._made_with: tuple[object, ...] = ()

    def run(
        self, request: messages.RunRequest, task: Task, *, is_cancelled: Callable[[], bool]
    ) -> Iterator[messages.AnyEvent]:
        """The events of a request; ``is_cancelled`` is asked once a second, in another thread."""
        ended = threading.Event()
        wanted = task.interpreter, task.contain
        with self._lock:
            if self._client is None or self._made_with != wanted:
                self._close()
                self._made_with = wanted
                self._client = EngineClient(task.interpreter, contain=lambda: task.contain, is_lazy=True)
            client = self._client

            def watch() -> None:
                while not ended.wait(CANCEL_POLL_S):
                    if is_cancelled():
                        client.cancel(request.job)
                        return

            threading.Thread(target=watch, daemon=True).start()
            try:
                yield from WorkerExecutor(client).run(request)
            finally:
                ended.set()

    def kill(self) -> None:
        """End the engine process and its job, now."""
        if self._client is not None:
            self._client.kill()

    def close(self) -> None:
        """End the engine process after its job."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


_engine = _Engine()
atexit.register(_engine.close)


def run_task(packed: bytes, contents: Mapping[str, bytes] | None = None) -> bytes:
    """Run a packed `Task`, and return the packed `TaskAnswer`.

    Raises: nothing of the job's: an error is in the answer, so that Dask does not try it again.
    """
    task = msgspec.msgpack.decode(packed, type=Task)
    begin = time.monotonic()
    with ExitStack() as temporary:
        try:
            if task.most_starts and _starts_before(task) >= task.most_starts:
                answer = TaskAnswer(host="", seconds=0.0, is_lost=True)
            else:
                try:
                    answer = _run(task, contents or {}, temporary)
                finally:
                    _note_end(task)
        except AceError as error:
            answer = TaskAnswer(host="", seconds=0.0, problems=error.problems)
        except OSError as error:
            problem = Problem(
                code=ErrorCode.SYSTEM, what="A file of the job could not be written", why=message_of(error)
            )
            answer = TaskAnswer(host="", seconds=0.0, problems=(problem,))
    seconds = time.monotonic() - begin
    host = task.recipe.engine.host or socket.gethostname()  # clocks of two machines are never compared
    return msgspec.msgpack.encode(replace(answer, host=host, seconds=seconds))


def _run(task: Task, contents: Mapping[str, bytes], temporary: ExitStack) -> TaskAnswer:
    folder, output, word = Path(task.folder), Path(task.output), task.word
    trusted = set(task.trusted_sha256)
    if task.bundle is not None:
        made = TemporaryDirectory(prefix="ace-studio-job-", dir=temporary_base())
        root = Path(temporary.enter_context(made)).resolve()
        folder = unpack(task.bundle, contents, UserFolders.of_user().state / "sweep-files", root / "files")
        trusted |= {file.sha256 for file in task.bundle.files} if task.trust else set()
        trusted |= set(sent_along(task.recipe, folder, root / "files"))
        word = replace(word, files=tuple(str(root / "files" / file.path) for file in task.bundle.files))
        output = root / "output"
    request = messages.RunRequest(
        job=task.job,
        recipe=task.recipe,
        folder=str(folder),
        trust_all=task.trust and task.bundle is None,
        trusted_sha256=tuple(trusted),
        word=word,
        output=str(output),
        timing_lock=str(timing_lock()),
    )
    follower = _Follower(task)
    for event in _engine.run(request, task, is_cancelled=follower.is_cancelled):
        follower.take(event)
    files = {} if task.bundle is None else _files_in(output)
    return TaskAnswer(host="", seconds=0.0, problems=follower.problems, result=follower.result, files=files)


def _starts_before(task: Task) -> int:
    """How often the job was started before and did not end, which the scheduler keeps when a worker dies."""
    starts = Queue(f"{task.topic}-{task.job}", client=get_worker().client)  # type: ignore[no-untyped-call]
    count = int(starts.qsize())  # type: ignore[no-untyped-call]
    starts.put(1)  # type: ignore[no-untyped-call]
    return count


def _note_end(task: Task) -> None:
    """Take a start back that did not end its worker: the job runs again if its answer is lost with another's worker."""
    if task.most_starts:
        starts = Queue(f"{task.topic}-{task.job}", client=get_worker().client)  # type: ignore[no-untyped-call]
        with suppress(TimeoutError):  # the sweep may have removed the count
            starts.get(timeout=1)  # type: ignore[no-untyped-call]


def forget_starts(topic: str, job: str, client: Client) -> None:
    """Remove the count from the scheduler, which has it for as long as anybody has opened it."""
    starts = Queue(f"{topic}-{job}", client=client)  # type: ignore[no-untyped-call]
    for _ in range(int(starts.qsize()) + 1):  # type: ignore[no-untyped-call]
        starts.close()  # type: ignore[no-untyped-call]


def _files_in(output: Path) -> dict[str, bytes]:
    paths = [path for path in output.rglob("*") if path.is_file() and not leads_out(path, output)]
    if sum(path.stat().st_size for path in paths) > _LARGEST_ANSWER_BYTES:
        paths = [path for path in paths if path.parent == output]  # the figures, without the artifacts
    found = {}
    for path in paths:
        with open_inside(path, output) as stream:
            found[path.relative_to(output).as_posix()] = stream.read()
    return found


class _Follower:
    """Takes the events of one job: sends progress on, and keeps the answer."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._worker: Any = get_worker()
        self._sent_s = -1e9
        self.problems: tuple[Problem, ...] = ()
        self.result = b""

    def take(self, event: messages.AnyEvent) -> None:
        """Note an event."""
        match event:
            case messages.Progress():
                self._send(event)
            case messages.JobFailed(problems=problems):
                self.problems = problems
            case messages.JobCancelled():
                self.problems = (Problem(code=ErrorCode.CANCELLED, what="The sweep was cancelled"),)
            case messages.WorkerLost(problem=problem):
                self.problems = (problem,)
            case messages.JobFinished(result=result) if result is not None:
                self.result = msgspec.json.encode(result)

    def _send(self, event: messages.Progress) -> None:
        now_s = time.monotonic()
        if now_s - self._sent_s >= PROGRESS_S:
            self._sent_s = now_s
            told = JobAdvanced(job=self._task.job, phase=str(event.phase), detail=event.detail, fraction=event.fraction)
            self._worker.log_event(self._task.topic, msgspec.to_builtins(told))

    def is_cancelled(self) -> bool:
        """Whether the sweep was; any thread may ask."""
        asked = Event(self._task.topic, client=self._worker.client)  # type: ignore[no-untyped-call]
        return bool(asked.is_set())  # type: ignore[no-untyped-call]
