"""The result of a job: the content of ``result.json`` (``format = 1``), a contract for its readers.

Latencies are milliseconds, sizes bytes, metric drops fractions, fidelity dB. ``None`` is written as ``null`` and
means: not measured (never: zero).
"""

from enum import StrEnum

import msgspec

from ace_studio.records.advice import Advice, AdviceOutcome
from ace_studio.records.errors import Problem
from ace_studio.records.results.capture import (
    AttemptStatus,
    CaptureAttempt,
    CaptureReport,
    GraphBreak,
    OpSupport,
    SubgraphKind,
    SubgraphReport,
    SupportStatus,
    TargetSupport,
)
from ace_studio.records.results.findings import Ceilings, Improvement, OpSensitivity, ParetoPoint, Warning, WorstSample
from ace_studio.records.results.finetuning import FinetuneReport
from ace_studio.records.results.pruning import PruningReport
from ace_studio.records.results.runs import (
    Baseline,
    BatchThroughput,
    Bound,
    DecodeReport,
    DeviceFigure,
    Latency,
    OpReport,
    OpsProfile,
    RunStatus,
    TargetRun,
)
from ace_studio.records.results.search import FrontPoint, Region, RegionChoice, SearchStep
from ace_studio.records.safe_file import decode_plain

RESULT_FORMAT = 1
RESULT_NAME = "result.json"
PICTURE_NAME = "comparison.svg"
REPORT_NAME = "report.html"
INPUTS_NAME = "artifacts/inputs.safetensors"
"""The call that was measured: its tensors, as ``0.POSITION``."""


class ResultStatus(StrEnum):
    """How the whole job ended."""

    OK = "ok"
    GOAL_NOT_MET = "goal-not-met"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Stopped by somebody; the figures are those until then."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result of a job."""

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
    """What ``[improve]`` tried, in order of trial."""
    sensitivity: tuple[OpSensitivity, ...] = ()
    search: tuple[SearchStep, ...] = ()
    """Every plan that the search for the goal evaluated; empty if nothing was searched for."""
    front: tuple[FrontPoint, ...] = ()
    """The mixtures between the fastest (or smallest) and the most exact, target by target, as predicted at the end."""
    regions: tuple[Region, ...] = ()
    """What the search chose from, for each group of ops of each target that it mixed precisions on."""
    pareto: tuple[ParetoPoint, ...] = ()
    pruning: PruningReport | None = None
    finetune: FinetuneReport | None = None
    advice: tuple[Advice, ...] = ()
    """At most three cards, the best first."""
    advice_from: AdviceOutcome | None = None
    """The card that this run was made from: estimated and actual gain."""
    recipe: str = ""
    """The recipe of this run, TOML."""
    folder: str = ""
    """Folder that the recipe's paths are relative to."""
    ceilings: Ceilings | None = None
    worst: tuple[WorstSample, ...] = ()
    """The examples with the largest error of each run, the worst first."""
    warnings: tuple[Warning, ...] = ()
    error: Problem | None = None
    seconds: float = 0.0
    phase_seconds: dict[str, float] = {}
    """Where they went: name of a `Phase` in small letters -> its seconds, without those of the report."""


def encode_result(result: Result) -> bytes:
    """The result as indented UTF-8 JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"


def decode_result(text: bytes) -> Result:
    """Read ``result.json`` back.

    Raises: msgspec.DecodeError if it is not a result of a format we know.
    """
    return decode_plain(text, Result)
