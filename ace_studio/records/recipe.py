"""The recipe: the one file that drives the window, the command line and CI.

Names and meanings are a contract (``format = 1``). Paths are relative to the recipe's folder. Reading and writing
the TOML, with every problem and its line, is in `recipe_file`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from ace_studio.records.plan import Plan
from ace_studio.records.tensors import DimChoice, TensorSpec

RECIPE_FORMAT = 1
ALL_RUNGS = ("export", "export-strict", "dynamo", "fx", "partial")
TARGET_NAMES = (
    "eager",
    "inductor",
    "aoti",
    "onnxruntime",
    "openvino",
    "executorch",
    "torchao-cuda",
    "tensorrt",
)


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Where the model comes from."""

    source: str = ""
    """``.py .pt .pth .safetensors .pt2 .onnx``, a folder, or the name of a model such as ``timm:resnet18``."""
    entry: str = ""
    """Callable -> module, or -> (module, example inputs); for weights: the factory, as ``file.py:name``; for a folder
    of Hugging Face: the class, if it is not the one that the folder names."""
    weights: str = ""
    """State dict to load into what the entry made; ``FILE:KEY`` takes one of several in a file."""


class InputsChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The examples to trace with: a callable, or rows of tensors, and overrides per dimension."""

    tracing: str = ""
    """Callable -> list of examples (tuple = args, dict = kwargs, tensor = the one argument)."""
    caught: str = ""
    """``inputs.json`` that ``ace-studio catch`` wrote, or its folder."""
    rows: tuple[dict[str, TensorSpec], ...] = ()
    dims: dict[str, DimChoice] = {}
    """``"x.0"`` -> choice."""


class ControlKind(StrEnum):
    """How the tracer should treat a function or a module."""

    NONSTRICT_TRACE = "nonstrict_trace"
    ALLOW_IN_GRAPH = "allow_in_graph"
    FX_WRAP = "fx_wrap"
    LEAF = "leaf"
    DISABLE = "disable"


class CaptureControl(msgspec.Struct, frozen=True, kw_only=True, rename={"treat_as": "as"}):
    """One control: a function (``module:name``) or a module class, and how to treat it."""

    function: str
    treat_as: ControlKind


class CaptureChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The rungs to try, in order, and the controls that hold for all of them."""

    rungs: tuple[str, ...] = ALL_RUNGS
    controls: tuple[CaptureControl, ...] = ()
    time_limit_s: float = 600.0
    """Seconds that one rung may take."""
    compare_rungs: bool = False
    """Try the remaining rungs too when one was accepted, only to show what becomes of them."""
    batch_only: bool = False
    """Let only the batch (the first free dimension 0) stay free, and hold every other size as in the first example."""
    cache: bool = True
    """Take a capture that was made before of the very same model, inputs and options, and keep this one."""


class CalibrationChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What to find activation ranges with."""

    inputs: str = ""
    """Callable -> iterable of examples. Empty: the tracing examples serve."""
    caught: str = ""
    """``inputs.json`` that ``ace-studio catch`` wrote, or its folder, instead of a callable."""
    samples: int = 64
    """How many examples to use at most."""


class EvaluateChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The user's own metric: ``evaluate(predict) -> float``; predict takes what forward takes."""

    function: str = ""
    higher_is_better: bool = True


class Objective(StrEnum):
    """What to optimise among candidates that meet the goal."""

    LATENCY = "latency"
    SIZE = "size"
    ACCURACY = "accuracy"


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What the result must satisfy. None means: no such bound."""

    max_drop: float | None = None
    """Largest relative drop of the metric, as a fraction: 0.01 is one percent."""
    min_sqnr_db: float | None = None
    """Smallest signal-to-quantization-noise ratio of the outputs, in dB."""
    max_size_mb: float | None = None
    """Largest artifact, in 10^6 bytes."""
    max_latency_ratio: float | None = None
    """Largest latency as a fraction of the baseline's."""
    optimize: Objective = Objective.LATENCY

    @property
    def has_bound(self) -> bool:
        """Whether anything is demanded at all."""
        bounds = (self.max_drop, self.min_sqnr_db, self.max_size_mb, self.max_latency_ratio)
        return any(bound is not None for bound in bounds)


class MeasureChoice(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure. Every target and the baseline get the same threads and the same device."""

    threads: int | Literal["all"] = 1
    rounds: int = 30
    device: str = "auto"
    """``auto`` (CUDA when there is one), ``cpu`` or ``cuda``."""


class TargetsChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The targets to lower to; ``auto`` is all that are available and fit the plan."""

    names: tuple[str, ...] = ("auto",)


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a job needs to know."""

    format: int = RECIPE_FORMAT
    model: ModelChoice = ModelChoice()
    inputs: InputsChoice = InputsChoice()
    capture: CaptureChoice = CaptureChoice()
    calibration: CalibrationChoice = CalibrationChoice()
    evaluate: EvaluateChoice = EvaluateChoice()
    plan: Plan = Plan(from_goal=True)
    goal: Goal = Goal()
    measure: MeasureChoice = MeasureChoice()
    targets: TargetsChoice = TargetsChoice()
