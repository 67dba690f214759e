"""What a job found: the content of ``result.json`` (``format = 1``), a contract that others read.

Latencies are milliseconds, sizes bytes, metric drops fractions, fidelity dB. ``None`` is written as ``null`` and
means that the value was not measured, never that it is zero.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ace_studio.records.advice import Advice, AdviceOutcome
from ace_studio.records.errors import Problem
from ace_studio.records.finetuning import FinetuneReport
from ace_studio.records.plan import PlanRule
from ace_studio.records.pruning import PruningReport
from ace_studio.records.tensors import InputFinding

RESULT_FORMAT = 1


class RungStatus(StrEnum):
    """How one rung of the capture ladder ended."""

    OK = "ok"
    """Captured, and equal to eager on every example and on unseen sizes."""
    FAILED = "failed"
    """The tracer gave up."""
    WRONG = "wrong"
    """Captured, but not equal to eager, or not dynamic where it should be."""
    TIMEOUT = "timeout"
    """Took longer than its limit."""
    CRASHED = "crashed"
    """Ended the engine process; what came after it ran in a new one."""
    SKIPPED = "skipped"
    """Not tried: an earlier rung was accepted, or this one does not apply."""


class RungOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One rung's outcome."""

    name: str
    status: RungStatus
    seconds: float = 0.0
    ops: int = 0
    error: Problem | None = None


class GraphBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A place where capture had to stop and start again, one per line of the user's code."""

    file: str
    line: int
    reason: str
    code: str = ""
    count: int = 1
    ops_left_eager: int = 0
    hint: str = ""
    id: str = ""
    """``op_id`` of the row of kind ``break`` that stands for it in the graph; empty if no row does."""
    module: str = ""
    """Dotted path of the module whose forward holds the line; empty at the root."""
    details: str = ""
    """What torch said, for those who ask."""


class PieceKind(StrEnum):
    """What one piece of a partial capture is."""

    FRAME = "frame"
    """What runs between two breaks, found by reading the code."""
    MODULE = "module"
    """One submodule, captured by itself because the code that calls it could not be read."""


class PieceReport(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of a partial capture."""

    name: str
    """``p0``, ``p1``, ...: what the ids of its ops begin with."""
    kind: PieceKind
    module: str = ""
    """Dotted path of the module that it is, or that its code belongs to; empty at the root."""
    ops: int = 0
    calls: int = 1
    """How often the first example calls it."""
    weight_bytes: int = 0
    inputs: tuple[InputFinding, ...] = ()
    error: Problem | None = None
    """Why it stays eager; None if it is captured and proven."""


class Warning(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not an error but that a person should know."""

    code: str
    what: str
    where: str = ""


class SupportStatus(StrEnum):
    """How a target takes one op."""

    NATIVE = "native"
    """As it is, or under another name."""
    DECOMPOSED = "decomposed"
    """Written as several other ops, all of which the target has."""
    FALLBACK = "fallback"
    """The target calls PyTorch's own kernel for it."""
    UNSUPPORTED = "unsupported"
    """Not at all: the target cannot build a graph that holds the op."""


class OpSupport(msgspec.Struct, frozen=True, kw_only=True):
    """How a target takes one op of the captured graph; known before anything is built."""

    id: str
    op: str
    status: SupportStatus
    instead: str = ""
    """What happens instead, in one sentence; empty if the op is native."""


class TargetSupport(msgspec.Struct, frozen=True, kw_only=True):
    """How a target takes the captured graph."""

    target: str
    counts: dict[str, int]
    """`SupportStatus` -> number of ops."""
    ops: tuple[OpSupport, ...] = ()
    """Those that are not native."""


class CaptureReport(msgspec.Struct, frozen=True, kw_only=True):
    """How the model was captured."""

    rung: str
    ops: int
    seconds: float
    graph_breaks: tuple[GraphBreak, ...] = ()
    rungs: tuple[RungOutcome, ...] = ()
    warnings: tuple[Warning, ...] = ()
    inputs: tuple[InputFinding, ...] = ()
    cached: bool = False
    pieces: tuple[PieceReport, ...] = ()
    """Empty if the graph was captured whole."""
    ops_left_eager: int = 0
    """Ops that run between the pieces."""
    support: tuple[TargetSupport, ...] = ()
    """One per target that is available and that the recipe names."""


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


class OpSensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """How much one op at one precision disturbs the outputs."""

    id: str
    precision: str
    sqnr_db: float


class Improvement(msgspec.Struct, frozen=True, kw_only=True):
    """What one method of ``[improve]`` did to the weights, judged on calibration examples that it did not see."""

    method: str
    precision: str = ""
    """Default precision of the plan that it was tried for."""
    before_db: float | None = None
    """Fidelity of the simulated plan without it; None if the method could not be tried."""
    after_db: float | None = None
    kept: bool = False
    reason: str = ""
    """Why it was kept, left or not tried."""
    ops: int = 0
    """How many ops it changed."""
    seconds: float = 0.0


class SearchStep(msgspec.Struct, frozen=True, kw_only=True):
    """One plan that the search for a goal evaluated, in the order of evaluation."""

    target: str
    low: str
    """Precision of the ops that were not kept high."""
    high: str = ""
    """Precision of those that were; empty if none was."""
    kept_high: int = 0
    """How many of the ops were kept high, the most sensitive ones first."""
    of: int = 0
    """How many ops could be."""
    rules: tuple[PlanRule, ...] = ()
    """What was added to the plan to keep them high."""
    improved: tuple[str, ...] = ()
    """Methods that the search tried by itself and that changed the weights for it; see `Improvement`."""
    predicted_db: float | None = None
    """Fidelity that the sensitivity scan let expect, before it was built."""
    metric: float | None = None
    metric_drop: float | None = None
    sqnr_db: float | None = None
    size_bytes: int | None = None
    """Of the saved artifact; only where the goal asks for the size."""
    latency_ratio: float | None = None
    """Latency as a fraction of the baseline's, from a few rounds in turn."""
    meets: bool = False
    """Whether it meets all of the goal."""
    misses: tuple[str, ...] = ()
    """What it misses, in words; or why it could not be built."""
    seconds: float = 0.0
    reused: bool = False
    """Whether an earlier run of the same job had evaluated it."""
    run: int | None = None
    """Index into `Result.runs`, if it was built in this run."""


class ParetoPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One run as a point of the trade-off; ``run`` indexes `Result.runs`."""

    run: int
    latency_ms: float
    size_bytes: int
    metric: float | None = None
    on_front: bool = False


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine can do at most with these threads, measured through torch."""

    gflops: dict[str, float]
    """Precision (fp32, bf16, int8-static, ...) -> 10^9 operations a second of a large matrix product or
    convolution, the best of some runs; precisions that torch cannot multiply in here are missing."""
    gbytes_per_s: float
    """10^9 bytes a second that a copy reads and writes, or a sum reads, from main memory: the best of some runs."""
    gbytes_per_s_at: dict[int, float]
    """Bytes of a working set -> 10^9 bytes a second: small ones stay in the caches."""
    spread: float
    """(best - median) / best over the runs, the worst of all ceilings: above 0.2 the machine was busy."""
    threads: int
    machine: str
    """Processor and torch release that they hold for."""


class WorstSample(msgspec.Struct, frozen=True, kw_only=True):
    """One example that a run does badly on."""

    run: int
    """Index into `Result.runs`."""
    sample: int
    """Index among the examples of ``source``, counted from 0."""
    source: str
    """``evaluation``, ``calibration`` or ``tracing``."""
    error: float
    """What the metric loses on it against the float model if it has a score (above 0 is worse), else the energy of the
    error over the energy of the outputs."""
    sqnr_db: float | None = None
    label: str = ""


class ResultStatus(StrEnum):
    """How the whole job ended."""

    OK = "ok"
    GOAL_NOT_MET = "goal-not-met"
    FAILED = "failed"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    format: int = RESULT_FORMAT
    status: ResultStatus
    fingerprint: str
    environment: dict[str, str | int | float | bool | None]
    capture: CaptureReport | None = None
    baseline: Baseline | None = None
    runs: tuple[TargetRun, ...] = ()
    chosen: int | None = None
    """Index into `runs` of the best one that meets the goal, or of the best found if none does."""
    goal_met: bool | None = None
    """None if no goal was set."""
    improvements: tuple[Improvement, ...] = ()
    """What ``[improve]`` tried, in order."""
    sensitivity: tuple[OpSensitivity, ...] = ()
    search: tuple[SearchStep, ...] = ()
    """Every plan that the search for the goal evaluated; empty if nothing was searched for."""
    pareto: tuple[ParetoPoint, ...] = ()
    pruning: PruningReport | None = None
    finetune: FinetuneReport | None = None
    advice: tuple[Advice, ...] = ()
    """At most three cards, the best first."""
    advice_from: AdviceOutcome | None = None
    """The card that this run was made from, estimate against actual."""
    recipe: str = ""
    """The recipe as it was run, TOML."""
    folder: str = ""
    """Folder that the recipe's paths are relative to."""
    ceilings: Ceilings | None = None
    worst: tuple[WorstSample, ...] = ()
    """Per run the examples that lose most, the worst first."""
    warnings: tuple[Warning, ...] = ()
    error: Problem | None = None
    seconds: float = 0.0


def encode_result(result: Result) -> bytes:
    """The result as indented UTF-8 JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"


def decode_result(text: bytes) -> Result:
    """Read ``result.json`` back.

    Raises: msgspec.ValidationError if it is not a result of a format we know.
    """
    return msgspec.json.decode(text, type=Result)
