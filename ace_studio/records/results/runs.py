"""What was measured of the float model and of every candidate."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ace_studio.records.errors import Problem
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


class Bound(StrEnum):
    """What keeps an op from being faster on this machine."""

    MEMORY = "memory"
    """Its bytes take longer to move than its arithmetic takes."""
    COMPUTE = "compute"
    """Its arithmetic takes longer than its bytes take to move."""


class OpReport(msgspec.Struct, frozen=True, kw_only=True):
    """One op of one run: what was planned, what the runtime really did, and why."""

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
    """Time of the kernels that do it, those of the ops fused into it included; None: the runtime does not say."""
    reason: str = ""
    fused_into: str = ""
    """Op whose kernel does this one too; empty if it has a kernel of its own, or nothing is left of it."""
    share: float | None = None
    """Its part of the time of all ops, 0..1."""
    flops: int | None = None
    """Floating-point operations of one call, those of the ops fused into it included."""
    bytes: int | None = None
    """Bytes that one call has to move at least: weights, inputs and outputs at the precision that it runs at."""
    bound: Bound | None = None
    ceiling_share: float | None = None
    """Lowest possible time by the roofline over its real time, 0..1: how near it is to what this machine can do."""
    error_db: float | None = None
    """SQNR of its value against the float model's at the same place, the ops before it compressed too, dB."""


class OpsProfile(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the measured latency the times of the ops explain."""

    ops_ms: float
    """Sum over the ops that the runtime times."""
    latency_ms: float
    """Median of the measured latency of the whole."""
    uncovered_ms: float
    """What is left: the calls into the runtime, conversions that belong to no op. Negative: timing each op slowed
    them down together."""
    timed_ops: int
    source: str
    """Who timed them, and how."""


class BatchThroughput(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples a second at one batch size."""

    batch: int
    latency_ms: float
    samples_per_s: float


class DecodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """Decoding that was really done: greedily, the cache fed back."""

    tokens: int
    tokens_per_s: float
    """Median over repetitions."""
    tokens_per_s_low: float
    tokens_per_s_high: float
    """Slowest and fastest repetition."""
    same_tokens: float
    """Part of the tokens, 0..1, that are those of the float model; the first difference ends the agreement."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """What every target is compared with, measured in the same rounds."""

    latency_ms: Latency | None = None
    metric: float | None = None
    metric_low: float | None = None
    metric_high: float | None = None
    """95 % interval of the metric over the samples; None if only the metric is known."""
    samples: int = 0
    """How many samples the metric was measured on; 0: unknown."""
    size_bytes: int = 0
    name: str = "eager fp32"
    """What it is; for an ONNX file, that file as it is in ONNX Runtime."""
    ops: tuple[OpReport, ...] = ()
    """The float model op by op."""
    profile: OpsProfile | None = None
    throughput: tuple[BatchThroughput, ...] = ()
    tokens_per_s: float | None = None
    decode: DecodeReport | None = None


class RunStatus(StrEnum):
    """How one target ended."""

    OK = "ok"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"
    DROPPED = "dropped"
    """Built and right, but clearly slower than another that meets the goal: not evaluated further."""


class TargetRun(msgspec.Struct, frozen=True, kw_only=True):
    """One target with one plan."""

    target: str
    status: RunStatus
    precision: str = ""
    """Default precision of the plan that was lowered."""
    latency_ms: Latency | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    """Ratio of baseline to target latency: median, and the 95 % bootstrap interval of the median."""
    metric: float | None = None
    metric_drop: float | None = None
    """(baseline - metric) / |baseline| if higher is better, negated if not; negative is a gain."""
    metric_low: float | None = None
    metric_high: float | None = None
    """95 % interval of the metric over the samples; None if only the metric is known."""
    drop_low: float | None = None
    drop_high: float | None = None
    """95 % interval of the drop, paired: baseline and run on the same samples. Around 0: no difference was seen."""
    sqnr_db: float | None = None
    """Fidelity of the outputs to eager fp32."""
    max_abs_error: float | None = None
    agreement: float | None = None
    """Share of the indices, labels and truth values among the outputs that are eager's; None if there are none."""
    size_bytes: int | None = None
    artifact: str | None = None
    """Path of the saved artifact, relative to the result's folder."""
    verified: bool = False
    """Reloaded in a fresh process and compared, an unseen size included."""
    ops: tuple[OpReport, ...] = ()
    error: Problem | None = None
    build_seconds: float | None = None
    peak_memory_bytes: int | None = None
    """What a fresh process grew by to hold the artifact (runtime included) and run it, at most; None: nobody says."""
    warnings: tuple[Warning, ...] = ()
    profile: OpsProfile | None = None
    throughput: tuple[BatchThroughput, ...] = ()
    tokens_per_s: float | None = None
    """Of a step model of a decoder: tokens a second, really decoded."""
    decode: DecodeReport | None = None
