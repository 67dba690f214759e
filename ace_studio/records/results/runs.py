"""The measurements of the baseline and of every candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from operator import attrgetter

import msgspec

from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.errors import Problem
from ace_studio.records.ops import is_weighted
from ace_studio.records.results.findings import Warning


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """A latency in milliseconds over ``n`` rounds, with its spread and the process time behind it."""

    p10: float
    p50: float
    p90: float
    n: int
    p99: float | None = None
    cpu_p50: float | None = None
    """Median CPU time of the process per call, ms; far from p50 x threads means that the machine was busy."""
    samples: tuple[float, ...] = ()
    """Every round, ms, in order."""


class DeviceFigure(msgspec.Struct, frozen=True, kw_only=True):
    """The latency of one artifact on one device of the list, and how the device was meanwhile."""

    device: str
    """Its name in the list."""
    machine: str
    """Name and processor of the machine that answered: its clock."""
    session: str
    """The measurement that it belongs to: figures of one session were taken in the same rounds."""
    date: str
    """ISO 8601, UTC."""
    latency_ms: Latency
    low: float
    high: float
    """95 % interval of the median, ms; equal to it where the device tells no single times."""
    threads: int
    runtime: str
    """``onnxruntime 1.23.2``."""
    sha256: str = ""
    """Of the artifact's first file."""
    governor: str = ""
    """The processor's frequency governor; empty where the system does not say, as for the figures below."""
    frequency_mhz_before: float | None = None
    frequency_mhz: float | None = None
    """Mean over the cores, before and after."""
    temperature_c_before: float | None = None
    temperature_c: float | None = None
    """Of the hottest sensor, before and after."""
    note: str = ""
    """What makes the figure doubtful, in one sentence."""


class Bound(StrEnum):
    """What limits the speed of an op on this machine."""

    MEMORY = "memory"
    """Moving its bytes takes longer than its arithmetic."""
    COMPUTE = "compute"
    """Its arithmetic takes longer than moving its bytes."""


class OpReport(msgspec.Struct, frozen=True, kw_only=True):
    """One op of one run: the planned and the actual precision, its time, and the reasons."""

    id: str
    op: str
    module: str
    shape: str
    device: str
    planned: str
    actual: str
    """A precision, or ``fused`` / ``folded`` / ``unknown`` with the reason saying more."""
    sensitivity_db: float | None = None
    latency_ms: float | None = None
    """Time of its kernels, including those of ops fused into it; None: the runtime does not report it. All ops together
    take as long as the whole at most."""
    reason: str = ""
    fused_into: str = ""
    """The op whose kernel computes this one too; empty if it has its own kernel or was folded."""
    share: float | None = None
    """Its share of the time of all ops, 0..1."""
    flops: int | None = None
    """Floating-point operations of one call, including those of ops fused into it."""
    bytes: int | None = None
    """Bytes that one call has to move at least: weights, inputs and outputs at the precision that it runs at."""
    bound: Bound | None = None
    ceiling_share: float | None = None
    """Lowest possible time by the roofline over its measured time, 0..1; 1 is the limit of this machine."""
    error_db: float | None = None
    """SQNR of its value against the float model's at the same place, dB; the ops before it are compressed too."""


class OpsProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The share of the measured latency that the times of the ops explain."""

    ops_ms: float
    """Sum over the ops that the runtime times."""
    latency_ms: float
    """Median of the measured latency of the whole, on the same input as the ops."""
    uncovered_ms: float
    """The rest: calls into the runtime and conversions that belong to no op."""
    timed_ops: int
    source: str
    """The profiler that timed them."""
    measured_input: str = ""
    """Sizes of the input that the ops and the whole were timed with, ``16x3x32x32``; empty: unknown."""


class BatchThroughput(msgspec.Struct, frozen=True, kw_only=True):
    """Throughput at one batch size."""

    batch: int
    latency_ms: float
    samples_per_s: float


class DecodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """Measured decoding: greedy, with the cache fed back."""

    tokens: int
    tokens_per_s: float
    """Median over repetitions."""
    tokens_per_s_low: float
    tokens_per_s_high: float
    """Slowest and fastest repetition."""
    same_tokens: float
    """Share of the tokens, 0..1, before the first that differs from the float model's."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The reference of every comparison, measured in the same rounds as the candidates."""

    latency_ms: Latency | None = None
    metric: float | None = None
    metric_low: float | None = None
    metric_high: float | None = None
    """95 % interval of the metric over the samples; None if only the value is known."""
    samples: int = 0
    """Samples that the metric was measured on; 0: unknown."""
    size_bytes: int = 0
    name: str = "eager fp32"
    """``eager fp32``, or ``ONNX Runtime``, which runs an ONNX file as it is."""
    ops: tuple[OpReport, ...] = ()
    """The float model op by op."""
    profile: OpsProfile | None = None
    throughput: tuple[BatchThroughput, ...] = ()
    tokens_per_s: float | None = None
    decode: DecodeReport | None = None


WITHIN_OTHERS = frozenset({"fused", "folded"})
"""What `OpReport.actual` says of an op that has no kernel of its own."""
NOT_REPORTED = frozenset({"unknown", ""})


_NOT_OWN = WITHIN_OTHERS | NOT_REPORTED


def _count(ops: tuple[OpReport, ...]) -> list[tuple[tuple[str, str, str], int]]:
    """How many ops have each operator, planned and actual precision.

    Counted without a loop of Python, and once: the window asks this of every run, and a run may have 50,000 ops.
    """
    return list(Counter(map(attrgetter("op", "planned", "actual"), ops)).items())


def _sums(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    return sum((Counter({name: count}) for name, count in counts), Counter())


_counted = kept_by_identity(_count, count=16)
"""Kept for every run of a usual result."""


class RunStatus(StrEnum):
    """How one run ended."""

    OK = "ok"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"
    DROPPED = "dropped"
    """Built and valid, but another plan is better: not measured further and not saved."""


class TargetRun(msgspec.Struct, frozen=True, kw_only=True):
    """One target with one plan."""

    target: str
    status: RunStatus
    precision: str = ""
    """Default precision of the plan that was lowered."""
    options: dict[str, str] = {}
    """Of the target, where a search found another way to build the plan faster; see resources/help/targets.md."""
    latency_ms: Latency | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    """Ratio of baseline to target latency: median, and the 95 % bootstrap interval of the median."""
    float_speedup: float | None = None
    float_speedup_low: float | None = None
    float_speedup_high: float | None = None
    """The same over fp32 in the same target, which in eager is the original; None where that was not in the rounds."""
    speed_undecided: str = ""
    """Why the figures do not say whether it is faster; empty if they do."""
    metric: float | None = None
    metric_drop: float | None = None
    """(baseline - metric) / |baseline| if higher is better, negated if not; negative is a gain."""
    metric_low: float | None = None
    metric_high: float | None = None
    """95 % interval of the metric over the samples; None if only the value is known."""
    drop_low: float | None = None
    drop_high: float | None = None
    """95 % interval of the drop, paired: both on the same samples. If it contains 0, no difference was seen."""
    overhead_us: float | None = None
    """Microseconds that one call of ``result.module`` takes more than the runtime alone; None for a model that takes
    longer than 0.5 ms, where it is lost in the noise, or where the runtime cannot be called alone."""
    sqnr_db: float | None = None
    """SQNR of the outputs against eager fp32, with their means."""
    fidelity_db: float | None = None
    """The same without the means, which say nothing; `goal.min_sqnr_db` bounds it. None if no output changes."""
    same_function: bool | None = None
    """Whether the target's exact build gives the model's answers to every probe; None if there is none."""
    probes: int = 0
    """Inputs that were compared for it: the examples, made-up sizes, and values that are chosen to hurt."""
    max_abs_error: float | None = None
    agreement: float | None = None
    """Share of the indices, labels and truth values in the outputs that equal eager's; None if there are none."""
    size_bytes: int | None = None
    artifact: str | None = None
    """Path of the saved artifact, relative to the result's folder."""
    artifact_sha256: str = ""
    """Of its file, as it was written; empty for a folder."""
    verified: bool = False
    """Reloaded in a fresh process and compared, an unseen size included."""
    not_run: str = ""
    """Why the artifact cannot be run on the machine that built it: then its outputs were never compared, it has no
    latency, and it is never chosen. Empty if it can."""
    ops: tuple[OpReport, ...] = ()
    error: Problem | None = None
    build_seconds: float | None = None
    peak_memory_bytes: int | None = None
    """Peak memory that a fresh process needs to load the artifact (runtime included) and run it; None: unknown."""
    warnings: tuple[Warning, ...] = ()
    profile: OpsProfile | None = None
    throughput: tuple[BatchThroughput, ...] = ()
    tokens_per_s: float | None = None
    """Of a step model of a decoder: measured tokens a second."""
    decode: DecodeReport | None = None
    devices: tuple[DeviceFigure, ...] = ()
    """Latencies on devices of the list, one each. None is ever compared with `latency_ms`, or with another device's."""

    @property
    def fidelity(self) -> float | None:
        """What is said of its accuracy in dB."""
        return self.sqnr_db if self.fidelity_db is None else self.fidelity_db

    @property
    def decided(self) -> TargetRun:
        """The run, without its speed-ups where they do not say what is faster."""
        if not self.speed_undecided:
            return self
        names = (f"{name}{end}" for name in ("speedup", "float_speedup") for end in ("", "_low", "_high"))
        return msgspec.structs.replace(self, **dict.fromkeys(names))

    @property
    def lacks_float_time(self) -> bool:
        """Whether it was timed beside the original, but not beside the fp32 run of its own runtime."""
        return self.speedup is not None and self.float_speedup is None and not self.is_exact

    @property
    def is_exact(self) -> bool:
        """Whether everything in it is at fp32, also where something else was asked for."""
        return self.precision == "fp32" or set(self.op_precisions) == {"fp32"}

    @property
    def op_precisions(self) -> Counter[str]:
        """How many ops have each precision as read back, without those that the runtime does not report."""
        return _sums((actual, count) for (_, _, actual), count in _counted(self.ops) if actual not in _NOT_OWN)

    @property
    def planned_precisions(self) -> Counter[str]:
        """How many ops are planned at each precision."""
        return _sums((planned, count) for (_, planned, _), count in _counted(self.ops))

    def _at(self) -> tuple[Counter[str], int]:
        """How many ops with arithmetic have each precision, and how many lack the one that was asked for.

        All ops count where none of them holds any.
        """
        known = [one for one in _counted(self.ops) if one[0][2] not in _NOT_OWN]
        counted = [one for one in known if is_weighted(one[0][0])] or known
        missed = sum(count for (_, planned, actual), count in counted if planned == self._asked != actual)
        return _sums((actual, count) for (_, _, actual), count in counted), missed

    @property
    def built_precision(self) -> str:
        """`precision`, or that of most ops if fewer than half of those that the plan asked it for have it."""
        found, missed = self._at()
        is_built = self._asked == "fp32" or not found or found[self._asked] >= max(1, missed)
        return self.precision if is_built else found.most_common(1)[0][0]

    @property
    def built_words(self) -> str:
        """``int8-static``, or ``fp32 (3 of 41 ops int8-static)`` where too few ops have what was asked for."""
        built, (found, _) = self.built_precision, self._at()
        words = f"{found[self._asked]} of {found.total()} ops"
        if built != self.precision:
            return f"{built} ({words} {self._asked})"
        parts = [words] if self._asked != "fp32" and 2 * found[self._asked] < found.total() else []
        parts += [f"{name} {value}" for name, value in self.options.items()]
        return f"{built} ({', '.join(parts)})" if parts else built

    @property
    def _asked(self) -> str:
        """The default of the plan, without its fallback."""
        return self.precision.partition(" + ")[0]
