"""A sweep: what its file says, its rows, and its report, the content of ``sweep.json`` (``format = 1``).

Names and meanings are a contract. Units are those of ``result.json``.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from ace_studio.records.errors import Problem
from ace_studio.records.goals import Figures, cost
from ace_studio.records.recipes.recipe import Objective, Recipe
from ace_studio.records.results import Result
from ace_studio.records.sending import Word

SWEEP_FORMAT = 1
SWEEP_NAME = "sweep.json"
MOST_JOBS = 10_000
"""A table of more is no use to anybody; the limit is reported before anything starts."""
MOST_COMBINATIONS = 1_000_000
"""Of the values of the axes, before some are excluded."""

NEEDED_FOR_SWEEPS = ("cryptography>=42,<50", "distributed>=2025.1,<2027", "jinja2>=3.1,<4")
"""What a Python that runs sweeps has beside what an engine needs; a test compares it with the project's metadata."""


class Axis(StrEnum):
    """What may differ between the jobs of one recipe."""

    PLAN = "plan"
    """A precision, ``auto`` (the goal decides), or a ``[plan]`` table."""
    GOAL = "goal"
    """The largest drop of the metric, ``none``, or a ``[goal]`` table."""
    TARGET = "target"
    """A target, ``auto``, or a list of targets."""
    THREADS = "threads"
    """A number, or ``all``."""
    SHAPE = "shape"
    """Shapes to trace and measure with, as ``x=8x3x32x32``; a list where the model has several inputs."""
    DEVICE = "device"
    """``cpu``, ``cuda`` or ``auto``; or the name of a device of the user's list, which measures the artifact."""


AxisValue = str | int | float | dict[str, object] | list[object]
AxisWord = str | int | float
"""A value of an axis as rows show it: tables and lists are JSON text."""


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """What the file of a sweep says. Paths are relative to its folder."""

    format: int = SWEEP_FORMAT
    recipes: tuple[str, ...]
    axes: dict[Axis, tuple[AxisValue, ...]] = {}
    exclude: tuple[dict[str, AxisValue], ...] = ()
    """A job with all values of one of these is left out; ``recipe`` names a recipe."""
    files: tuple[str, ...] = ()
    """Further files that the jobs need, as patterns relative to the recipe's folder (``data/*.npz``)."""


class SweepJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job: one recipe with one value of every axis."""

    job: str
    """Its number in the sweep, with leading zeros; also the name of its folder."""
    recipe_path: str
    axes: dict[str, AxisWord]
    recipe: Recipe
    folder: str
    """Folder that the recipe's paths are relative to."""
    files: tuple[str, ...] = ()


class RowStatus(StrEnum):
    """How one job of a sweep ended."""

    WAITING = "waiting"
    DONE = "done"
    """It has a result; `SweepRow.goal_met` says whether that meets its goal."""
    FAILED = "failed"
    """It ended with an error, which would come again."""
    LOST = "lost"
    """The process or the machine that it ran on ended, twice."""
    CANCELLED = "cancelled"


class SweepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One job with its axes and the figures of its run: those of the chosen target."""

    job: str
    recipe: str
    axes: dict[str, AxisWord]
    status: RowStatus = RowStatus.WAITING
    key: str = ""
    """SHA-256 of the recipe and of the files that it needs: a sweep that goes on keeps rows with the same key."""
    run: int | None = None
    """Number in the history."""
    folder: str = ""
    """Folder with ``result.json``, the report and the artifacts, relative to that of the sweep."""
    host: str = ""
    """Name of the machine that measured."""
    target: str = ""
    precision: str = ""
    latency_ms: float | None = None
    latency_p10_ms: float | None = None
    latency_p90_ms: float | None = None
    baseline_ms: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    float_speedup: float | None = None
    float_speedup_low: float | None = None
    float_speedup_high: float | None = None
    """Over fp32 in the same runtime; None where that was not measured."""
    speed_undecided: str = ""
    """As that of the run; then there is no speed-up."""
    metric: float | None = None
    metric_drop: float | None = None
    higher_is_better: bool = True
    """Of the metric."""
    sqnr_db: float | None = None
    fidelity_db: float | None = None
    size_bytes: int | None = None
    peak_memory_bytes: int | None = None
    artifact: str | None = None
    """Path of the chosen artifact, relative to the folder of the sweep."""
    verified: bool = False
    goal_met: bool | None = None
    on_front: bool = False
    """See `with_front`."""
    warnings: tuple[str, ...] = ()
    """Codes of the warnings of the run and of its chosen target."""
    seconds: float = 0.0
    error: Problem | None = None

    @property
    def fidelity(self) -> float | None:
        """As `TargetRun.fidelity`."""
        return self.sqnr_db if self.fidelity_db is None else self.fidelity_db


class SweepStatus(StrEnum):
    """How a whole sweep ended, or stands."""

    RUNNING = "running"
    OK = "ok"
    """Every job has a result."""
    INCOMPLETE = "incomplete"
    """Some jobs failed or were lost."""
    CANCELLED = "cancelled"


class SweepReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole sweep: one row per job, in the order of the file."""

    format: int = SWEEP_FORMAT
    status: SweepStatus
    rows: tuple[SweepRow, ...]
    scheduler: str = ""
    """Address of the Dask scheduler; empty: a cluster on this machine."""
    seconds: float = 0.0
    environment: dict[str, str] = {}
    """ACE Studio, Python and Dask where the sweep was started."""


class JobAdvanced(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """How far a running job is."""

    job: str
    phase: str
    detail: str = ""
    fraction: float | None = None


class SweepAdvanced(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A row came, or the sweep began."""

    row: SweepRow | None
    done: int
    total: int
    workers: int
    remaining_s: float | None = None
    """Estimate from the median of the jobs so far; None before the first ended."""
    kept: tuple[SweepRow, ...] = ()
    """When the sweep begins: the rows that an earlier call left."""
    is_lost: bool = False
    """The connection to the scheduler was lost; it is being looked for, and the jobs go on there."""


SweepEvent = JobAdvanced | SweepAdvanced


class SweepEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The last word of a sweep in a process of its own."""

    report: SweepReport | None = None
    """None if it could not begin, or its process died."""
    problems: tuple[Problem, ...] = ()


class SweepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to run the jobs of a sweep."""

    scheduler: str = ""
    """Address of a Dask scheduler; ``slurm:8``: workers that SLURM starts; empty: a cluster of this machine."""
    trust: bool = False
    """Whether the code of the jobs' files may run, here and where they are sent."""
    trusted_sha256: tuple[str, ...] = ()
    """Contents that may run without that, and what may be sent."""
    word: Word = Word()
    """What the user said may be sent."""
    interpreter: str = ""
    """Python of the engine on this machine; empty: the one that runs the sweep."""
    contain: bool | None = None
    """Whether the engine is contained, as in `WorkerClient`."""
    workers: int = 0
    """Most workers of the cluster of this machine; 0: as many as cores and memory allow."""
    mlflow: str = ""
    """Address of an MLflow server, or of a store, to log the jobs to; empty: nowhere."""


class SweepOrder(SweepOptions, frozen=True, kw_only=True):
    """What a sweep in a process of its own is to do."""

    sweep: Sweep
    folder: str
    """What the paths of the recipes are relative to."""
    texts: dict[str, str] = {}
    """Recipe -> its text, where that is not what is in its file."""
    out: str


def row_of(job: SweepJob, result: Result) -> SweepRow:
    """The row of a job with a result, without the facts of where it ran."""
    chosen = result.runs[result.chosen] if result.chosen is not None else None
    baseline = result.baseline
    latency = chosen.latency_ms if chosen else None
    warnings = (*result.warnings, *(chosen.warnings if chosen else ()))
    row = SweepRow(
        job=job.job,
        recipe=job.recipe_path,
        axes=job.axes,
        status=RowStatus.DONE if chosen else RowStatus.FAILED,
        baseline_ms=baseline.latency_ms.p50 if baseline and baseline.latency_ms else None,
        latency_ms=latency.p50 if latency else None,
        latency_p10_ms=latency.p10 if latency else None,
        latency_p90_ms=latency.p90 if latency else None,
        goal_met=result.goal_met,
        higher_is_better=job.recipe.evaluate.is_higher_better,
        warnings=tuple(dict.fromkeys(one.code for one in warnings)),
        error=result.error,
    )
    if chosen is None:
        return row
    others = {"status", "precision", "latency_ms", "warnings", "error"}
    same = (set(row.__struct_fields__) & set(chosen.__struct_fields__)) - others
    facts = {name: getattr(chosen.decided, name) for name in same}
    return msgspec.structs.replace(row, precision=chosen.built_words, **facts)


def with_front(rows: Sequence[SweepRow]) -> tuple[SweepRow, ...]:
    """The rows with `SweepRow.on_front` set: no comparable row beats one on the front in time, size and accuracy.

    Comparable are rows of the same machine and shape, because clocks of two machines say nothing about each other.
    Accuracy is the metric where all of them have one. Else it is the fidelity, and only rows of one recipe compare.
    """
    groups: dict[tuple[object, ...], list[SweepRow]] = {}
    for row in rows:
        if row.status is RowStatus.DONE and row.latency_ms is not None:
            groups.setdefault((row.host, row.axes.get(Axis.SHAPE)), []).append(row)
    fronts = set[str]()
    for group in groups.values():
        if all(row.metric is not None for row in group):
            fronts |= _front({row.job: _figures(row, by_metric=True) for row in group})
            continue
        for recipe in {row.recipe for row in group}:
            fronts |= _front({row.job: _figures(row, by_metric=False) for row in group if row.recipe == recipe})
    return tuple(msgspec.structs.replace(row, on_front=row.job in fronts) for row in rows)


def _front(figures: dict[str, Figures]) -> set[str]:
    """What beats a row comes before it in the order of the costs, and is on the front or beaten by what is."""
    front: dict[str, Figures] = {}
    for job, own in sorted(figures.items(), key=lambda one: cost(one[1], Objective.LATENCY)):
        if not any(other.beats(own) for other in front.values()):
            front[job] = own
    return set(front)


def _figures(row: SweepRow, *, by_metric: bool) -> Figures:
    """The row as `Figures.beats` compares it; milliseconds take the place of the ratio."""
    size = None if row.size_bytes is None else row.size_bytes / 1e6
    if not by_metric or row.metric is None:
        return Figures(sqnr_db=row.fidelity, size_mb=size, latency_ratio=row.latency_ms)
    return Figures(drop=-row.metric if row.higher_is_better else row.metric, size_mb=size, latency_ratio=row.latency_ms)
