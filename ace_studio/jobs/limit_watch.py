"""Watches from the parent what a job uses: memory of all its processes, and time without a report of progress.

A calibration function that never ends would otherwise take all memory, until the system ends processes of other
people; an import that hangs would hang for ever.
"""

import math
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import LimitsChoice

LOOK_S = 0.25
FAMILY_S = 1.0
"""Seconds between two searches for processes that a job has started."""
RESERVE = 0.05
"""Share of the free memory that a job leaves to others by default."""
MOST_OF_THE_MACHINE = 0.8
WARNED_AT = 0.85
"""Share of the limit at which the job warns, once."""
SILENT_S = 600.0
"""Seconds that a step may take by default without a report of progress, as to load and to run the model once."""
LONG_SILENT_S = 14_400.0
LONG_STEPS = frozenset(
    {
        messages.Phase.CALIBRATE, messages.Phase.COMPRESS, messages.Phase.LOWER, messages.Phase.SENSITIVITY,
        messages.Phase.EVALUATE, messages.Phase.FIX, messages.Phase.CATCH, messages.Phase.PRUNE,
        messages.Phase.FINETUNE,
    }
)  # fmt: skip
"""Steps that take all of the user's data, run all of his script, or compile; they may take the longer time."""
TOLD_BEFORE = 3
"""Where somebody may be looking, a step is ended after this many times the default; before, it is told."""
_CGROUP = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_GROUP_FILES = {
    "": ("", "memory.max", "memory.current", re.compile(r"^(?:in)?active_file (\d+)", re.MULTILINE)),
    "memory": (
        "memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        re.compile(r"^total_(?:in)?active_file (\d+)", re.MULTILINE),
    ),
}
"""Controllers -> folder below `_CGROUP`, files with the limit and the use, and the page cache in ``memory.stat``: of
version 2 and of version 1."""
_HELD = {
    "status": re.compile(r"^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB", re.MULTILINE),
    "smaps_rollup": re.compile(r"^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB", re.MULTILINE),
}
"""File of a process in /proc -> what it holds that the system cannot take back: not the files that it maps. The first
is read in microseconds and counts what a forked process shares in each of them; the second divides it (proportional
set size), and takes milliseconds per gigabyte."""


class LimitWatch:
    """A thread that ends the process when its running job goes over a limit."""

    def __init__(
        self,
        *,
        request: Callable[[], messages.AnyRequest | None],
        pid: Callable[[], int | None],
        say: Callable[[Problem], None],
        end: Callable[[Problem], None],
        over: threading.Event,
        limits: Callable[[], LimitsChoice] | None,
    ) -> None:
        """Store the parts; `start` starts the thread.

        Args:
            request: The running job, None if there is none.
            pid: The worker process.
            say: Warns of what may end the job.
            end: Ends the worker and all that it started, for this reason.
            over: Set when the worker has ended.
            limits: As `WorkerClient` says.
        """
        self._request, self._pid, self._say, self._end, self._over = request, pid, say, end, over
        self._usual_limits = limits
        self._step = (messages.Phase.START, "")
        self._begin()
        self._family: list[int] = []
        self._family_s = 0.0

    def start(self) -> None:
        """Start watching."""
        threading.Thread(target=self._watch, name="ace-limits", daemon=True).start()

    def observe(self, event: messages.AnyEvent) -> None:
        """Take note of an event: any but a line of the log is a sign of life."""
        if isinstance(event, messages.Progress):
            self._step = (event.phase, event.detail)
        elif isinstance(event, messages.JOB_ENDS):
            self._step = (messages.Phase.START, "")
        if not isinstance(event, messages.LogLine):
            self._begin()

    def _begin(self) -> None:
        """Count the silence from now on."""
        self._since_s, self._told = time.monotonic(), 0

    def _watch(self) -> None:
        watched: messages.AnyRequest | None = None
        limits, memory, has_warned = LimitsChoice(), 0.0, False
        while not self._over.wait(LOOK_S):
            request = self._request()
            if request is None:
                watched = None
                continue
            if request is not watched:  # not by its id: commands of one process use the same again
                watched, has_warned = request, False
                limits = self._limits_of(request)
                self._family_s = 0.0
                memory = limits.memory_mb * 1e6 or default_memory() + self._used(math.inf)
                self._begin()
            used = self._used(memory)
            if used > memory:
                return self._end(self._memory_problem(used, memory))
            if used > WARNED_AT * memory and not has_warned:
                has_warned = True
                self._say(self._memory_problem(used, memory, is_over=False))
            if (problem := self._silence(limits)) is not None:
                return self._end(problem)
        return None

    def _limits_of(self, request: messages.AnyRequest) -> LimitsChoice:
        usual = self._usual_limits() if self._usual_limits else LimitsChoice()
        own = request.recipe.limits if isinstance(request, messages.TraceRequest) else usual
        return replace(own, memory_mb=own.memory_mb or usual.memory_mb, step_s=own.step_s or usual.step_s)

    def _used(self, most: float) -> float:
        """Bytes that the worker and all that it started hold, exact if that may be near ``most``."""
        if time.monotonic() - self._family_s > FAMILY_S:
            self._find_family()
        total = sum(_held(pid, "status") for pid in self._family)
        if total > WARNED_AT * most:
            self._find_family()  # a process that is missing holds a part of what the others share
            total = sum(_held(pid, "smaps_rollup") for pid in self._family)
        return total

    def _find_family(self) -> None:
        import psutil  # noqa: PLC0415 - not needed for the first picture of the window

        pid, self._family_s = self._pid(), time.monotonic()
        self._family = []
        with suppress(psutil.Error):
            if pid is not None:
                self._family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]

    def _silence(self, limits: LimitsChoice) -> Problem | None:
        phase, detail = self._step
        usual = LONG_SILENT_S if phase in LONG_STEPS else SILENT_S
        is_told = self._usual_limits is not None and not limits.step_s
        most = limits.step_s or usual * (TOLD_BEFORE if is_told else 1)
        silent = time.monotonic() - self._since_s
        if silent <= most:
            if is_told and silent > (self._told + 1) * usual:
                self._told += 1
                self._say(
                    Problem(
                        code=ErrorCode.TIMEOUT,
                        what=f"{_words(phase, detail)}: nothing was reported for {silent / 60:.0f} min",
                        why=f"the job is still working, or hangs; it is ended after {most / 60:.0f} min",
                        remedy="Wait, or stop it with Cancel (Esc); Settings > Engine sets another limit",
                    )
                )
            return None
        return Problem(
            code=ErrorCode.TIMEOUT,
            what=f"{_words(phase, detail)}: nothing was reported for {silent:,.0f} s, and the job was ended",
            why=f"a step may take {most:,.0f} s without progress",
            remedy="Look at the line where it was; raise [limits] step_s if it needs longer",
            where="[limits] step_s",
        )

    def _memory_problem(self, used: float, most: float, *, is_over: bool = True) -> Problem:
        held = f"{_words(*self._step)}: the job held {used / 1e9:.1f} GB of memory"
        why = "more could have ended other programs on this machine" if is_over else "it is ended where it holds more"
        return Problem(
            code=ErrorCode.OUT_OF_MEMORY,
            what=f"{held}, and was ended" if is_over else f"{held}, nearly as much as it may",
            why=f"it may hold {most / 1e9:.1f} GB; {why}",
            remedy="Use fewer or smaller examples, or raise [limits] memory_mb if the machine has more",
            where="[limits] memory_mb",
        )


def default_memory() -> float:
    """Bytes that a job may take by default: what is free less a reserve, at most 80 % of the machine."""
    import psutil  # noqa: PLC0415 - not needed for the first picture of the window

    memory = psutil.virtual_memory()
    free, most = min(float(memory.available), _group_free()), MOST_OF_THE_MACHINE * float(memory.total)
    return max(0.0, min((1 - RESERVE) * free, most))


def _group_free() -> float:
    """Bytes that the control groups of this process leave it, as in a container; page cache counts as free."""
    free = math.inf
    with suppress(OSError):
        for line in (_PROC / "self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers not in _GROUP_FILES:
                continue
            below, limit, use, cache = _GROUP_FILES[controllers]
            root = _CGROUP / below
            own = root / path.lstrip("/")
            for group in (own, *(parent for parent in own.parents if parent.is_relative_to(root))):
                with suppress(OSError, ValueError):  # "max" is no limit; a container sees only its own groups
                    used = float((group / use).read_text())
                    cached = sum(map(int, cache.findall((group / "memory.stat").read_text())))
                    free = min(free, float((group / limit).read_text()) - used + cached)
    return free


def _held(pid: int, file: str) -> float:
    """Bytes that a process holds, by that file of `_HELD`; 0 if it has ended."""
    import psutil  # noqa: PLC0415 - not needed for the first picture of the window

    for each in (file, "status"):  # the second file of a process that may not be traced cannot be read
        with suppress(OSError):
            if found := _HELD[each].findall((_PROC / str(pid) / each).read_text()):
                return 1024.0 * sum(map(int, found))
    with suppress(psutil.Error):  # another system
        process = psutil.Process(pid)
        if file != "status" and hasattr(used := process.memory_full_info(), "uss"):
            return float(used.uss)
        return float(process.memory_info().rss)
    return 0.0


def _words(phase: messages.Phase, detail: str) -> str:
    return f"{phase}: {detail}" if detail else str(phase)
