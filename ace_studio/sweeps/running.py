"""Runs a sweep: gives its jobs to a cluster, writes each row as it comes, and goes on where an earlier call stopped."""

import os
import platform
import re
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from msgspec.structs import replace

from ace_studio import __version__
from ace_studio.jobs.cores import bytes_of_job, workers_here
from ace_studio.records.bundle import Bundle, bundle_of, departure_of
from ace_studio.records.errors import AceError, ErrorCode, Problem, message_of
from ace_studio.records.results import RESULT_NAME, decode_result
from ace_studio.records.safe_file import make_output_folder, read_or_none, read_plain, write_atomically
from ace_studio.records.sending import LeavingFile, Word
from ace_studio.records.sweeps import (
    SWEEP_NAME,
    JobAdvanced,
    RowStatus,
    SweepAdvanced,
    SweepEvent,
    SweepJob,
    SweepOptions,
    SweepReport,
    SweepRow,
    SweepStatus,
    row_of,
    with_front,
)
from ace_studio.session.kept.history import History
from ace_studio.sweeps.cluster import GPU, MEMORY, TIMING, Connection, is_lost, local_cluster
from ace_studio.sweeps.mlflow_log import MlflowLog
from ace_studio.sweeps.on_devices import SweepDevices, device_of
from ace_studio.sweeps.slurm import slurm_cluster, slurm_workers
from ace_studio.sweeps.tables import write_tables
from ace_studio.sweeps.work import Task, TaskAnswer

JOBS_FOLDER = "jobs"
_ROW_NAME, _TOPIC_NAME = "row.json", "topic.txt"
_TOPIC = re.compile(r"ace-studio-[0-9a-f]{12}")
"""Another is a stranger's: all at a scheduler begin alike, and a topic ends the jobs that begin as it does."""
_NAME_LENGTH = 32
"""Of the key of a job, in its name at the scheduler."""
_MOST_STARTS = 2
"""Of a job whose workers die."""
_POLL_S = 0.5
_WRITE_S = 2.0
"""Seconds between two writes of the whole table; each row is written at once."""


OnEvent = Callable[[SweepEvent], None]


def run_sweep(
    jobs: Sequence[SweepJob], out: Path, options: SweepOptions, on_event: OnEvent = lambda _event: None
) -> SweepReport:
    """Run the jobs that have no result in ``out`` yet, write all that is found there, and return the report.

    Ctrl-C ends the running jobs, keeps what is done, and returns a report with the status ``cancelled``.

    Raises: AceError if the folder cannot be written, a file of a job is missing, or the scheduler or MLflow cannot be
        reached. What is done by then is written with its tables, with the status ``incomplete``.
    """
    make_output_folder(out)
    log = MlflowLog(options.mlflow) if options.mlflow else None
    sweep = _Running(jobs, out, options, on_event)
    sweep.prepare()
    try:
        sweep.run()
    except KeyboardInterrupt:
        sweep.is_cancelled = True
    except Exception:  # whatever it is: what is done is written, and no status says that it runs
        sweep.finish()
        raise
    report = sweep.finish()
    if log is not None:
        log.log(report, out)
    return report


class _Running:
    def __init__(self, jobs: Sequence[SweepJob], out: Path, options: SweepOptions, on_event: OnEvent) -> None:
        self._jobs = {job.job: job for job in jobs}
        self._out, self._options, self._on_event = out, options, on_event
        self._rows = {job.job: SweepRow(job=job.job, recipe=job.recipe_path, axes=job.axes) for job in jobs}
        self._bundles: dict[str, tuple[Bundle, dict[str, LeavingFile]]] = {}
        self._began_s = time.monotonic()
        self._written_s = -1e9
        self._workers = 1
        self._host = platform.node()
        self._history = History.open_default()
        self._peaks = cache(self._history.usual_memory)
        self._devices = SweepDevices(list(self._rows.values()), self._history, trust=options.trust, word=options.word)
        self._unmeasured: dict[str, SweepRow] = {}
        """Rows of an earlier call whose run is done, and was not measured on their device."""
        self._sent: dict[str, str] = {}
        """The jobs at the scheduler: their names there, and their numbers."""
        self._interrupted = threading.Event()
        self.is_cancelled = False

    def prepare(self) -> None:
        """Find the files of every job, and take over rows that an earlier call left."""
        self._write()  # so that the files of jobs do not include what the sweep writes
        digest, options = cache(LeavingFile.sha256), self._options
        refused: dict[Problem, None] = {}
        for job in self._jobs.values():
            departure = departure_of(job.recipe, Path(job.folder), job.files, word=options.word)
            # To the scheduler, and from there to the recipe's host. One that is called from here is asked about then.
            for place in filter(None, (options.scheduler, job.recipe.engine.host) if options.scheduler else ()):
                is_named = place in {options.scheduler, *options.word.hosts}
                questions = departure.refusals(place, is_named=is_named, trusted=options.trusted_sha256)
                refused |= dict.fromkeys(questions)
            bundle, sources = bundle_of(job.recipe, departure, digest=digest)
            self._bundles[job.job] = bundle, sources
            waiting = replace(self._rows[job.job], key=bundle.key)
            kept = self._kept(job.job, bundle.key)
            self._rows[job.job] = waiting if kept is None else kept
            if kept is None or not device_of(kept):
                continue
            measured = self._devices.known(kept, self._out / kept.folder)
            self._rows[job.job] = measured or waiting
            if measured is None:
                self._unmeasured[job.job] = kept
        if refused:
            raise AceError(*refused)

    def _kept(self, job: str, key: str) -> SweepRow | None:
        """The row of a job that an earlier call finished, if its recipe and files are the same."""
        if (row := read_or_none(self._folder(job) / _ROW_NAME, SweepRow)) is None:
            return None
        is_same = row.key == key and row.status is RowStatus.DONE and (self._folder(job) / RESULT_NAME).is_file()
        if not is_same:
            return None
        # Its place is where it was found: a file says nothing of where others are read and written.
        own = self._folder(job).relative_to(self._out).as_posix()
        return replace(row, job=job, axes=self._rows[job].axes, recipe=self._rows[job].recipe, folder=own)

    def _folder(self, job: str) -> Path:
        """By the content of the job: its number changes if an axis gets another value."""
        return self._out / JOBS_FOLDER / (self._rows[job].key or self._bundles[job][0].key)[:16]

    @property
    def _waiting(self) -> list[str]:
        """The jobs without an end, one of those that are the same run."""
        ran = self._unmeasured.keys() | self._devices.jobs
        rows = [(job, row) for job, row in self._rows.items() if job not in ran]
        waiting = {row.key: job for job, row in reversed(rows) if row.status is RowStatus.WAITING}
        return list(reversed(waiting.values()))

    def run(self) -> None:
        """Give the waiting jobs to a cluster, and take what comes until there are none."""
        try:
            with noted_interrupts() as self._interrupted:
                for kept in self._unmeasured.values():
                    self._take_one(kept)
                self._unmeasured.clear()
                if self._waiting:
                    self._run_waiting()
                while self._devices.is_busy:
                    self._take_figures(_POLL_S)
        finally:
            self._devices.stop()

    def _run_waiting(self) -> None:
        options = self._options
        with ExitStack() as opened:
            cluster: Any = options.scheduler
            if not cluster:
                threads = [self._jobs[job].recipe.measure.threads for job in self._waiting]
                most = max(self._bytes_of(self._jobs[job]) for job in self._waiting)
                cores = workers_here(threads, bytes_per_job=most)[: len(self._waiting)]
                cluster = opened.enter_context(local_cluster(cores[: options.workers or None]))
            elif count := slurm_workers(cluster):
                cluster = opened.enter_context(slurm_cluster(min(count, len(self._waiting)), self._out))
            connection = Connection(cluster, self._topic())
            is_kept = connection.is_elsewhere
            try:
                self._follow(connection)
                is_kept = False
            except KeyboardInterrupt:
                self.is_cancelled = True
                for name, packed in connection.finished():
                    if (job := self._sent.get(name)) in self._waiting:  # else it was being taken
                        self._take_row(self._row(job, packed, None))
                if not connection.is_lost:
                    is_kept = False
                    self._forget_topic()  # first: an event cancels all jobs of this topic
                    connection.cancel()
                raise
            finally:
                connection.close(is_kept=is_kept)
                if not is_kept:
                    self._forget_topic()

    def _topic(self) -> str:
        """What the jobs are called at the scheduler: as an earlier call did that had no time to take them back."""
        topic, path = f"ace-studio-{os.urandom(6).hex()}", self._out / JOBS_FOLDER / _TOPIC_NAME
        if self._options.scheduler:
            with suppress(OSError, UnicodeDecodeError):
                if _TOPIC.fullmatch(kept := read_plain(path).decode()):
                    return kept
            make_output_folder(path.parent, below=self._out)
            write_atomically(path, topic.encode())
        return topic

    def _forget_topic(self) -> None:
        if self._options.scheduler:
            (self._out / JOBS_FOLDER / _TOPIC_NAME).unlink(missing_ok=True)

    def _name(self, job: str) -> str:
        return self._rows[job].key[:_NAME_LENGTH]

    def _follow(self, connection: Connection) -> None:
        kept = tuple(row for row in self._rows.values() if row.status is RowStatus.DONE)
        self._workers = len(connection.workers)
        self._tell(None, kept)
        if not self._workers:  # what the workers offer decides how the jobs are sent
            while not connection.workers:
                connection.take(timeout_s=_POLL_S)
                self._take_figures()
            self._workers = len(connection.workers)
            self._tell(None, kept)
        for place, job in enumerate(self._waiting):
            if (resources := self._resources(job, connection)) is None:
                self._take_row(self._no_gpu(job))
                continue
            packed, files = self._packed(job, connection.topic)
            self._sent[self._name(job)] = job
            connection.send(self._name(job), packed, files, resources, place=place)
        connection.forget_others()
        was_lost = False
        while self._sent:
            news = connection.take(timeout_s=_POLL_S)
            if connection.is_lost != was_lost:
                was_lost = connection.is_lost
                self._tell(None, is_lost=was_lost)
            self._take_figures()
            if news is None:
                continue
            name, found, error = news
            if name:
                self._take_row(self._row(self._sent[name], found, error))
                del self._sent[name]
                connection.done(name)
            elif found["job"] in self._sent:
                told = replace(msgspec.convert(found, JobAdvanced), job=self._sent[found["job"]])
                self._on_event(told)

    def _resources(self, job: str, connection: Connection) -> dict[str, float] | None:
        """What a job asks for, of what workers offer; None if it wants a GPU and none does."""
        resources = {TIMING: 1.0} if connection.resource(TIMING) else {}
        if offered := connection.resource(MEMORY):  # a job that no worker has room for gets a whole one
            resources[MEMORY] = min(float(self._bytes_of(self._jobs[job])), offered)
        if self._jobs[job].recipe.measure.device == "cuda" and self._options.scheduler:
            if not connection.resource(GPU):
                return None
            resources[GPU] = 1.0
        return resources

    def _bytes_of(self, job: SweepJob) -> int:
        """Estimate of the memory that a job takes, by earlier runs of its model."""
        return bytes_of_job(self._peaks(Path(job.folder), job.recipe.model.source))

    def _packed(self, job: str, topic: str) -> tuple[bytes, Mapping[str, LeavingFile]]:
        """The task of a job, and the files that are sent with it: none to a cluster of this machine."""
        one, (bundle, sources) = self._jobs[job], self._bundles[job]
        options = self._options
        task = Task(
            job=self._name(job), topic=topic, recipe=one.recipe, trust=options.trust,
            trusted_sha256=options.trusted_sha256, word=options.word, contain=options.contain,
        )  # fmt: skip
        if not options.scheduler:
            folder = self._folder(job)
            make_output_folder(folder, below=self._out)
            output = str(folder.absolute())
            task = replace(task, folder=one.folder, output=output, interpreter=options.interpreter)
            return msgspec.msgpack.encode(task), {}
        word = Word(hosts=(one.recipe.engine.host,))  # which was asked about before, by `prepare`
        task = replace(task, recipe=bundle.recipe, bundle=bundle, word=word, most_starts=_MOST_STARTS)
        return msgspec.msgpack.encode(task), sources

    def _row(self, job: str, packed: bytes | None, error: BaseException | None) -> SweepRow:
        """The row of a job that ended; its files are written, and its run is added to the history."""
        waiting, folder = self._rows[job], self._folder(job)
        answer = None if packed is None else msgspec.msgpack.decode(packed, type=TaskAnswer)
        if answer is None or answer.is_lost:
            lost = answer is not None or is_lost(error)
            problem = Problem(
                code=ErrorCode.CRASH,
                what="The process that ran the job ended, and so did a second one" if lost else "Dask gave the job up",
                why=message_of(error) if error else "",
                remedy="Look at the memory of the machines; run the sweep again to try the job once more.",
            )
            return replace(waiting, status=RowStatus.LOST if lost else RowStatus.FAILED, error=problem)
        facts = {"key": waiting.key, "host": answer.host, "seconds": answer.seconds}
        if not answer.result:
            is_cancelled = any(one.code is ErrorCode.CANCELLED for one in answer.problems)
            status = RowStatus.CANCELLED if is_cancelled else RowStatus.FAILED
            return replace(waiting, status=status, error=next(iter(answer.problems), None), **facts)
        result = decode_result(answer.result)
        for name, content in answer.files.items():
            target = folder / name
            make_output_folder(target.parent, below=self._out)
            write_atomically(target, content)
        row = replace(row_of(self._jobs[job], result), folder=folder.relative_to(self._out).as_posix(), **facts)
        if row.artifact:
            row = replace(row, artifact=f"{row.folder}/{row.artifact}")
        one = self._jobs[job]
        try:
            row = replace(row, run=self._history.remember(result, one.recipe, Path(one.folder), output=folder))
        except AceError as problem:  # the run waits in a file, and the sweep goes on
            row = replace(row, warnings=(*row.warnings, str(problem.problem.code)))
        return row

    def _no_gpu(self, job: str) -> SweepRow:
        problem = Problem(
            code=ErrorCode.UNSUPPORTED,
            what="The job wants a GPU, and no worker of the cluster offers one",
            remedy=f'Start a worker with --resources "{GPU}=1" on a machine that has one.',
        )
        return replace(self._rows[job], status=RowStatus.FAILED, error=problem)

    def _take_row(self, row: SweepRow) -> None:
        """Take the row of a run, for all jobs that are this run; devices measure it for those that name one."""
        if row.status is RowStatus.DONE:
            write_atomically(self._out / row.folder / _ROW_NAME, msgspec.json.encode(row))
        for job, other in list(self._rows.items()):
            if job == row.job or (other.key == row.key and other.status is RowStatus.WAITING):
                self._take_one(replace(row, job=job, axes=other.axes, recipe=other.recipe))
        if time.monotonic() - self._written_s > _WRITE_S:
            self._write()

    def _take_one(self, row: SweepRow) -> None:
        """Take the row of one job. One that names a device comes again with the figures of that device."""
        if row.status is RowStatus.DONE and device_of(row):
            measured = self._devices.known(row, self._out / row.folder)
            if measured is None:
                if not self.is_cancelled:  # else its run is kept, and the next call measures it
                    self._devices.measure(row, self._out / row.folder)
                return
            row = measured
        self._rows[row.job] = row
        self._tell(row)

    def _take_figures(self, timeout_s: float = 0.0) -> None:
        if self._interrupted.is_set():
            raise KeyboardInterrupt
        for came in self._devices.take(timeout_s):
            if isinstance(came, JobAdvanced):
                self._on_event(came)
            else:
                self._rows[came.job] = came
                self._tell(came)

    def _tell(self, row: SweepRow | None, kept: tuple[SweepRow, ...] = (), *, is_lost: bool = False) -> None:
        left = sum(one.status is RowStatus.WAITING for one in self._rows.values())
        took = [one.seconds for one in self._rows.values() if one.seconds]
        remaining = statistics.median(took) * left / max(1, self._workers) if took else None
        self._on_event(
            SweepAdvanced(
                row=row,
                done=len(self._rows) - left,
                total=len(self._rows),
                workers=self._workers,
                remaining_s=remaining,
                kept=kept,
                is_lost=is_lost,
            )
        )

    def _report(self, status: SweepStatus) -> SweepReport:
        import dask  # noqa: PLC0415 - the name only

        return SweepReport(
            status=status,
            rows=tuple(self._rows.values()),
            scheduler=self._options.scheduler,
            seconds=time.monotonic() - self._began_s,
            environment={"ace-studio": __version__, "python": platform.python_version(), "dask": dask.__version__},
        )

    def _write(self) -> None:
        self._written_s = time.monotonic()
        report = self._report(SweepStatus.RUNNING)
        write_atomically(self._out / SWEEP_NAME, msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")

    def finish(self) -> SweepReport:
        """The report, written with its tables."""
        if self.is_cancelled:
            for job, row in self._rows.items():
                if row.status is RowStatus.WAITING:
                    self._rows[job] = replace(row, status=RowStatus.CANCELLED)
            status = SweepStatus.CANCELLED
        else:
            is_whole = all(row.status is RowStatus.DONE for row in self._rows.values())
            status = SweepStatus.OK if is_whole else SweepStatus.INCOMPLETE
        report = self._report(status)
        report = replace(report, rows=with_front(report.rows))
        write_tables(report, self._out)
        return report


@contextmanager
def noted_interrupts() -> Iterator[threading.Event]:
    """Note Ctrl-C too: Python drops the exception if it comes while an object of Dask's is being deleted."""
    noted, before = threading.Event(), signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        noted.set()
        signal.default_int_handler(number, frame)

    is_usual = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if is_usual:
        signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        if is_usual:
            signal.signal(signal.SIGINT, before)
