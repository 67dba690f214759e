"""Builds candidates in separate processes while the job builds others itself."""

from __future__ import annotations

import shutil
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
import psutil

from ace_studio.engine import measure
from ace_studio.engine.examples.stored_calls import CannotLeaveError
from ace_studio.engine.flow import BoundPlan, CapturedModel, Example
from ace_studio.engine.pipeline.builders import messages
from ace_studio.engine.pipeline.builders.child import SETUP_NAME
from ace_studio.engine.pipeline.builders.process import BuilderLostError, BuilderProcess
from ace_studio.engine.pipeline.builders.stored import store_capture
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.targets.base import Lowered, OpActual, Target
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.records.errors import AceError
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.safe_file import link_or_copy

SECONDS_PER_OP = 0.03
"""Estimated build time per op of the graph. Measured: 0.02 to 0.06 s on ResNet50 and BERT, warm, by target and plan."""
START_S = 8.0
"""Estimated time until a process can build: importing torch and the targets' libraries, reading the capture."""
MOST_PROCESSES = 4
PROCESS_BYTES = 1_500_000_000
"""Memory of such a process with all libraries, before it has a model."""
_WEIGHT_COPIES = 6
"""Copies of the weights that a process may hold: as read, exported, quantized, built, and temporary ones."""
_POLL_S = 0.1


@dataclass(frozen=True)
class BuildJob:
    """Inputs that all builds of a job share."""

    captured: CapturedModel
    calibration: Callable[[], Sequence[Example]]
    """Raises AceError if there is none."""
    threads: int
    ranges: RangeChoice
    folder: Path
    """Folder for the files of the processes; created when needed and removed at the end."""
    reporter: Reporter
    weight_bytes: int
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """One build that the job will request."""

    target: Target
    plan: BoundPlan

    @property
    def key(self) -> tuple[str, Plan]:
        """A plan is bound to a target in one way only."""
        return (self.target.name, self.plan.plan)


@dataclass
class _Entry:
    wanted: Wanted
    number: int
    is_claimed: bool = False
    answer: Future[tuple[messages.AnyAnswer, _Beside] | None] = field(default_factory=Future)
    """None if the process was lost before it answered."""


class Builders:
    """Processes that build the expected candidates from the last to the first, while the job works from the first on.

    Where the two meet nobody waits: what no process has begun the job builds itself. Whether there are processes at
    all follows from how much there is to build, from the cores, and from the memory that is free.
    """

    def __init__(self, job: BuildJob, *, most: int | None = None) -> None:
        """Starts no process. ``most`` limits the number of processes; None: as many as are worth their start."""
        self._job = job
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, Plan], _Entry] = OrderedDict()
        self._beside: list[_Beside] = []
        self._count = 0
        self._has_started = False

    @property
    def waiting(self) -> int:
        """Builds that no process has begun."""
        with self._lock:
            return sum(not entry.is_claimed for entry in self._entries.values())

    # --- the job's side ---

    def expect(self, wanted: Sequence[Wanted]) -> None:
        """Announce the builds that will be requested, in that order; start processes if they are worth it."""
        with self._lock:
            for one in wanted:
                if one.key not in self._entries:
                    self._entries[one.key] = _Entry(one, self._count)
                    self._count += 1
        if not self._has_started and (processes := self._worth(self.waiting)):
            self._has_started = True
            self._start(processes)
        for beside in self._beside:
            beside.go_on()

    def take(self, wanted: Wanted) -> tuple[Lowered, messages.Built] | None:
        """Open an expected build; None if no process has begun it, or the process that had it is gone.

        Raises: AceError as `Target.lower` would have raised it; Cancelled.
        """
        with self._lock:
            entry = self._entries.pop(wanted.key, None)
        if entry is None or not entry.is_claimed:
            return None
        while not entry.answer.done():
            self._job.reporter.check()
            wait([entry.answer], timeout=_POLL_S)
        answered = entry.answer.result()
        if answered is None:
            return None
        answer, beside = answered
        if isinstance(answer, messages.Refused):
            raise AceError(answer.problem)
        assert isinstance(answer, messages.Built)
        for warning in answer.warnings:
            self._job.reporter.warn(warning.code, warning.what, where=warning.where, options=warning.options)
        lowered = BuiltElsewhere(
            wanted.target,
            self._job.captured,
            answer,
            threads=self._job.threads,
            read_back=partial(beside.read_back, entry.number, self._job.reporter),
            release=partial(beside.release, entry.number),
        )
        return lowered, answer

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause all builds while the job measures."""
        for one in self._beside:
            one.process.pause()
        try:
            yield
        finally:
            for one in self._beside:
                one.process.resume()

    def close(self) -> None:
        """End the processes and remove their files."""
        with self._lock:
            self._entries.clear()
        for one in self._beside:
            one.close()
        self._beside.clear()
        shutil.rmtree(self._job.folder, ignore_errors=True)

    # --- whether, and how many ---

    def _worth(self, waiting: int) -> int:
        """How many processes are worth their start."""
        if self._most is not None:
            return min(self._most, max(0, waiting - 1))
        work_s = waiting * SECONDS_PER_OP * sum(1 for _ in self._job.captured.table.op_rows())
        if work_s < 2 * START_S:
            return 0
        each = PROCESS_BYTES + _WEIGHT_COPIES * self._job.weight_bytes
        by_memory = int(psutil.virtual_memory().available) // (2 * each)  # half is for the job itself
        return min(MOST_PROCESSES, measure.resolve_threads("all") - 1, by_memory, int(work_s / START_S) - 1)

    def _start(self, processes: int) -> None:
        job = self._job
        job.reporter.phase(Phase.LOWER, f"processes that build beside this one: {processes}")
        try:
            needs_data = any(entry.wanted.plan.plan.needs_calibration for entry in self._entries.values())
            calibration = job.calibration() if needs_data else ()
            shutil.rmtree(job.folder, ignore_errors=True)  # of a job that was killed
            job.folder.mkdir(parents=True)
            store_capture(job.captured, calibration, job.folder)
            setup = messages.Setup(threads=job.threads, ranges=job.ranges, sizes=job.sizes)
            (job.folder / SETUP_NAME).write_bytes(msgspec.json.encode(setup))
            for index in range(processes):
                self._beside.append(_Beside(job.folder, index, claim=self._claim))
        except Cancelled:
            raise
        except (AceError, CannotLeaveError, OSError):
            return  # the job then builds everything itself and reports the problem with the data

    def _claim(self) -> _Entry | None:
        """The last build that no process has begun."""
        with self._lock:
            for entry in reversed(self._entries.values()):
                if not entry.is_claimed:
                    entry.is_claimed = True
                    return entry
        return None


class _Beside:
    """A process, and the one thread that talks to it."""

    def __init__(self, folder: Path, index: int, *, claim: Callable[[], _Entry | None]) -> None:
        self._folder = folder
        self._claim = claim
        self.process = BuilderProcess(folder, log=folder / f"log-{index}.txt")
        self._unneeded: deque[int] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="build")
        self._first = self._thread.submit(self.process.wait_until_ready)

    def go_on(self) -> None:
        """Build until no unbegun build is left."""
        self._thread.submit(self._build_all)

    def _build_all(self) -> None:
        if self._first.exception() is not None:
            return  # it never came up; the job builds everything itself
        while (entry := self._claim()) is not None:
            try:
                entry.answer.set_result((self._build(entry), self))
            except (BuilderLostError, OSError):
                entry.answer.set_result(None)
                return

    def _build(self, entry: _Entry) -> messages.AnyAnswer:
        folder = self._folder / f"{entry.number:02d}"
        folder.mkdir()
        name, plan = entry.wanted.target.name, entry.wanted.plan
        return self._ask(messages.BuildOrder(number=entry.number, target=name, plan=plan, folder=str(folder)))

    def _ask(self, order: messages.BuildOrder | messages.ReadBackOrder) -> messages.AnyAnswer:
        while self._unneeded:
            self.process.tell(messages.ReleaseOrder(number=self._unneeded.popleft()))
        return self.process.ask(order)

    def read_back(self, number: int, reporter: Reporter) -> list[OpActual]:
        """Ask the process for the op reports of a build; empty if the process is gone. Raises: AceError."""
        asked = self._thread.submit(self._ask, messages.ReadBackOrder(number=number))
        while not asked.done():
            reporter.check()
            wait([asked], timeout=_POLL_S)
        try:
            answer = asked.result()
        except BuilderLostError:
            return []
        if isinstance(answer, messages.Refused):
            raise AceError(answer.problem)
        assert isinstance(answer, messages.ReadBack)
        return list(answer.ops)

    def release(self, number: int) -> None:
        """Release a build before the next one starts. Takes no lock: the garbage collector may call this anywhere."""
        self._unneeded.append(number)

    def close(self) -> None:
        """Kill the process; its current build is lost."""
        self.process.kill()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self.process.close()


class BuiltElsewhere(Lowered):
    """A candidate that another process built: runs the saved artifact itself, opened by `Target.load`.

    Args:
        target: What it was built for.
        captured: What it was built from.
        built: The answer of the process that built it.
        threads: Threads that it may use.
        read_back: Asks that process; called at most once for each report.
        release: Tells it that nobody needs its build any more; called when this object goes.

    Raises: as `Target.load`.
    """

    def __init__(
        self,
        target: Target,
        captured: CapturedModel,
        built: messages.Built,
        *,
        threads: int,
        read_back: Callable[[], list[OpActual]],
        release: Callable[[], object],
    ) -> None:
        self._path = Path(built.path)
        self._read_back = read_back
        self.runs_in_torch = built.runs_in_torch  # type: ignore[misc]  # a fact of the build here, not of the class
        self._call = FlatCall(captured).around(target.load(self._path, threads=threads))
        weakref.finalize(self, release).atexit = False

    def read_back(self) -> list[OpActual]:
        """The op reports of the process that built it."""
        return self._read_back()

    def save(self, folder: Path) -> Path:
        """Put the artifact into ``folder``, as hard links where the disk allows them."""
        shutil.copytree(self._path.parent, folder, dirs_exist_ok=True, copy_function=link_or_copy)
        return folder / self._path.name
