"""The recipe: the one file that drives the window, the command line and CI.

Names and meanings are a contract (``format = 1``). Paths are relative to the recipe's folder. Reading and writing
the TOML, with every problem and its line, is in `records.recipes.file`.
"""

from enum import StrEnum
from typing import Literal

import msgspec

from ace_studio.records.recipes.plan import Plan
from ace_studio.records.tensors import DimChoice, TensorSpec

RECIPE_FORMAT = 1
RECIPE_SUFFIX = ".ace.toml"
"""What a proposed file name ends with: other programs write ``.toml`` too. Every ``.toml`` is opened."""
ALL_CAPTURE_METHODS = ("export", "export-strict", "dynamo", "fx", "partial")


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Where the model comes from."""

    source: str = ""
    """``.py .pt .pth .safetensors .pt2 .onnx``, a folder, or the name of a model such as ``timm:resnet18``."""
    entry: str = ""
    """Callable -> module, or -> (module, example inputs); for weights: the factory, as ``file.py:name``; for a folder
    of Hugging Face: the class, if it is not the one that the folder names."""
    weights: str = ""
    """State dict to load into what the entry made; ``FILE:KEY`` takes one of several in a file."""


class ShapesFrom(StrEnum):
    """What decides which sizes of the inputs stay free."""

    EXAMPLES = "examples"
    """The examples: a run stops if its data have other sizes."""
    DATA = "data"
    """Also calibration and evaluation: examples at their smallest, usual and largest sizes are added."""


class InputsChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The examples to trace with: a callable, or rows of tensors, and overrides per dimension."""

    tracing: str = ""
    """Callable -> list of examples (tuple = args, dict = kwargs, tensor = the one argument); a file
    (``.npz .safetensors .pt``) or a folder of images."""
    caught: str = ""
    """``inputs.json`` that ``ace-studio catch`` wrote, or its folder."""
    rows: tuple[dict[str, TensorSpec], ...] = ()
    dims: dict[str, DimChoice] = {}
    """``"x.0"`` -> choice."""
    tuples: tuple[str, ...] = ()
    """Inputs that are passed as a tuple where rows give numbered items (``state.0``, ``state.1``); else as a list."""
    shapes_from: ShapesFrom = ShapesFrom.EXAMPLES


class ControlKind(StrEnum):
    """How a capture method should treat a function or a module."""

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
    """The capture methods (``rungs``) to try, in order, and the controls for all of them."""

    rungs: tuple[str, ...] = ALL_CAPTURE_METHODS
    controls: tuple[CaptureControl, ...] = ()
    time_limit_s: float = 600.0
    """Seconds that one capture method may take."""
    compare_rungs: bool = False
    """Try the remaining capture methods too after one was accepted, to compare them."""
    batch_only: bool = False
    """Let only the batch (the first free dimension 0) stay dynamic; every other size is that of the first example."""
    cache: bool = True
    """Use a cached capture of the same model, inputs and options, and store this one."""


class Observer(StrEnum):
    """How the range of an activation is computed from the values seen in calibration."""

    MIN_MAX = "min-max"
    """From the smallest to the largest."""
    PERCENTILE = "percentile"
    """The middle ``percentile`` percent: rare outliers are clipped."""
    MSE = "mse"
    """The range with the smallest mean squared error."""
    ENTROPY = "entropy"
    """The range that changes the distribution of the values least (Kullback-Leibler)."""


class Subset(StrEnum):
    """Which examples of the calibration data are used if there are more than ``samples``."""

    FIRST = "first"
    """The first ones; the others are not read."""
    SPREAD = "spread"
    """At even distances over all of them."""
    RANDOM = "random"
    """Drawn under a fixed seed, in their order."""


class CalibrationChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The data and the observer that activation ranges are computed with."""

    inputs: str = ""
    """Callable -> iterable of examples; a file (``.npz .safetensors .pt``) or a folder of images. Empty: the tracing
    examples."""
    caught: str = ""
    """``inputs.json`` that ``ace-studio catch`` wrote, or its folder, instead of a callable."""
    samples: int = 64
    """How many examples to use at most."""
    subset: Subset = Subset.FIRST
    observer: Observer = Observer.MIN_MAX
    percentile: float = 99.99
    """Of the percentile observer, in (50, 100]."""
    mean: tuple[float, ...] = ()
    """Subtracted per channel from images in 0..1; empty: nothing."""
    std: tuple[float, ...] = ()
    """What images are divided by per channel after that; empty: nothing."""


class ImproveMethod(StrEnum):
    """A change of the weights that keeps a compressed model closer to the original."""

    EQUALIZE = "equalize"
    """Cross-layer equalisation: channels of neighbouring layers are scaled to the same size."""
    SMOOTHQUANT = "smoothquant"
    """Outliers of activations after a norm are moved into the weights."""
    BIAS_CORRECTION = "bias-correction"
    """The mean error of each op is subtracted from its bias."""
    COMPENSATE = "compensate"
    """Each output channel of an op gets the gain and the offset that bring it closest to its float values."""
    GPTQ = "gptq"
    """Weights are rounded one after the other, and the next ones compensate for each error."""
    AWQ = "awq"
    """Weights that multiply large activations are scaled up before rounding."""
    LEARNED_ROUNDING = "learned-rounding"
    """Each op's results teach whether its weights are rounded up or down, and their grids."""


class ImproveChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What to try beyond plain quantization; each is kept only if it helps on held-out calibration examples."""

    methods: tuple[ImproveMethod, ...] = ()
    by_search: bool = True
    """Whether a search for a goal tries methods before it keeps ops at a higher precision; unused with ``methods``."""
    max_seconds: float = 120.0
    """The most time that learned rounding takes to learn, per plan."""


class ScanChoice(StrEnum):
    """When the sensitivity of the ops is measured."""

    AUTO = "auto"
    """When the search for a goal needs it."""
    ON = "on"
    """In every run."""
    OFF = "off"
    """Never: a search takes ops in the order of their cost."""


class SensitivityChoice(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure how much each op, computed at a low precision, disturbs the outputs."""

    scan: ScanChoice = ScanChoice.AUTO
    probes: int = 4
    """Random vectors propagated back from the outputs; more reduce the noise and cost a backward pass each."""
    samples: int = 4
    """How many of the calibration examples to use."""


METRIC_NAMES = ("top-1", "top-5", "f1", "auc", "spearman", "mse", "perplexity")
"""The built-in metrics."""
LOWER_IS_BETTER = frozenset({"mse", "perplexity"})
"""Those of them that are errors; a run reads the direction here."""


class EvaluateChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The metric of a model: the user's own, or a built-in one on labelled data."""

    function: str = ""
    """``evaluate(predict) -> float``, or the scores of all samples, whose mean is the metric; predict takes what
    forward takes."""
    higher_is_better: bool = True
    """Of the user's own metric; built-in metrics have a fixed direction."""
    metric: str = ""
    """One of `METRIC_NAMES`, measured on ``data``; empty if ``function`` measures, or nothing does."""
    data: str = ""
    """Callable -> iterable of (inputs, labels), or a file (``.npz .safetensors .pt``) with the inputs and ``labels`` by
    name."""
    output: str = ""
    """Which output the metric is computed on, as a path such as ``0`` or ``logits``; empty: the first tensor."""

    @property
    def is_higher_better(self) -> bool:
        """Whether a larger metric is better."""
        return self.metric not in LOWER_IS_BETTER if self.metric else self.higher_is_better


class Objective(StrEnum):
    """What to optimise among candidates that meet the goal."""

    LATENCY = "latency"
    SIZE = "size"
    ACCURACY = "accuracy"


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds that the result must meet; None is no bound."""

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
        """Whether the goal has any bound."""
        bounds = (self.max_drop, self.min_sqnr_db, self.max_size_mb, self.max_latency_ratio)
        return any(bound is not None for bound in bounds)

    @property
    def wants_small(self) -> bool:
        """Whether the size is bounded or optimized."""
        return self.optimize is Objective.SIZE or self.max_size_mb is not None

    @property
    def bounds_accuracy(self) -> bool:
        """Whether the goal bounds the metric or the fidelity."""
        return self.max_drop is not None or self.min_sqnr_db is not None


class DecodeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """How to decode greedily, token by token, with a model that is one step of a decoder with a cache.

    Inputs and outputs are named by paths such as ``cache`` or ``1.0``; a path stands for every tensor below it.
    """

    token: str = ""
    """Input for the last token, [batch, 1]; empty: the model is not a step of a decoder."""
    logits: str = "0"
    """Output with the scores of the next token, [..., vocabulary]."""
    feed: dict[str, str] = {}
    """Input -> output that is fed back to it for the next step, such as ``cache = "1"``."""
    position: str = ""
    """Input that counts the tokens, plus one at every step; empty: there is none."""
    mask: str = ""
    """Input that is extended by a 1 at every step; empty: there is none."""
    tokens: int = 32
    """How many tokens are decoded."""


class MeasureChoice(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure. Every target and the baseline get the same threads and the same device."""

    threads: int | Literal["all", "best"] = 1
    """``best``: the number with which the original is fastest, found before anything is measured."""
    rounds: int = 30
    device: str = "auto"
    """``auto`` (CUDA when there is one), ``cpu`` or ``cuda``."""
    profile: bool = True
    """Whether every op is timed, and the peak performance of this machine is measured."""
    batches: tuple[int, ...] = ()
    """Batch sizes to measure the throughput at; the first dimension of the inputs must be dynamic."""
    decode: DecodeChoice = DecodeChoice()


class PruneMethod(StrEnum):
    """What pruning removes."""

    NONE = "none"
    UNSTRUCTURED = "unstructured"
    """Single weights: the smallest of the whole model."""
    N_M = "n:m"
    """In every group of M neighbours along the input, all but the N largest."""
    STRUCTURED = "structured"
    """Whole channels, with everything that reads or writes them."""


class Importance(StrEnum):
    """How the importance of weights is measured."""

    MAGNITUDE = "magnitude"
    """Their size."""
    TAYLOR = "taylor"
    """Size times gradient, over the fine-tuning or calibration data."""


class PruneChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What to prune before the graph is captured."""

    method: PruneMethod = PruneMethod.NONE
    amount: float = 0.5
    """Fraction to remove: of the weights (unstructured) or of every layer's channels (structured)."""
    pattern: str = "2:4"
    """N:M: of M neighbouring weights N are kept."""
    importance: Importance = Importance.MAGNITUDE
    ignore: tuple[str, ...] = ()
    """``module:GLOB`` or ``type:GLOB``: layers that are not pruned."""
    round_to: int = 8
    """The number of channels left is a multiple of this (structured)."""


class FinetuneMethod(StrEnum):
    """How to train after compression."""

    NONE = "none"
    DISTILL = "distill"
    """Towards the outputs of the original model; needs inputs only."""
    TRAIN = "train"
    """With the user's loss on pairs of input and label."""
    QAT = "qat"
    """As distill (or train, if there is a loss), with weights and inputs rounded as int8 rounds them."""


class FinetuneChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Training after pruning and before the graph is captured; the best state by a held-out score is kept."""

    method: FinetuneMethod = FinetuneMethod.NONE
    data: str = ""
    """Callable -> iterable of batches: inputs, or (inputs, label) pairs with a loss. Empty: the calibration data."""
    loss: str = ""
    """Callable ``loss(output, label) -> scalar tensor``."""
    epochs: int = 3
    learning_rate: float = 1e-4
    held_out: float = 0.2
    """Fraction of the batches that is used for the score instead of training."""
    seed: int = 0
    max_seconds: float = 600.0


class TargetsChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The targets to lower to; ``auto`` is every available target that supports the plan."""

    names: tuple[str, ...] = ("auto",)
    sizes: dict[str, tuple[int, ...]] = {}
    """``"x.0"`` -> smallest, usual and largest size of a dynamic dimension, for targets that are built for a range of
    sizes (TensorRT, ExecuTorch); else the examples say."""


class EngineChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Where the engine of this recipe runs."""

    host: str = ""
    """``user@name``, or a name of the ssh configuration; empty: on this machine."""
    python: str = ""
    """Its interpreter there; empty: ``python3``."""
    files: tuple[str, ...] = ()
    """Patterns of more files that go there: what the code reads and the recipe does not name."""


class LimitsChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a job may use before it is ended. 0 is the default of `jobs.limit_watch`."""

    memory_mb: float = 0.0
    """Memory of all its processes together, in 10^6 bytes."""
    step_s: float = 0.0
    """Seconds that one step may take without a report of progress."""
    examples: int = 100_000
    """Examples that are read from one source of data."""


class AdviceOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The advice card that this recipe was made from; the run compares the card's estimate with its result."""

    kind: str = ""
    title: str = ""
    quantity: str = ""
    """A value of `records.advice.AdviceQuantity`."""
    estimated_gain: float | None = None
    before: float | None = None
    """The quantity in the run that gave the card."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a job needs to know."""

    format: int = RECIPE_FORMAT
    model: ModelChoice = ModelChoice()
    inputs: InputsChoice = InputsChoice()
    capture: CaptureChoice = CaptureChoice()
    calibration: CalibrationChoice = CalibrationChoice()
    improve: ImproveChoice = ImproveChoice()
    sensitivity: SensitivityChoice = SensitivityChoice()
    evaluate: EvaluateChoice = EvaluateChoice()
    plan: Plan = Plan(from_goal=True)
    goal: Goal = Goal()
    measure: MeasureChoice = MeasureChoice()
    targets: TargetsChoice = TargetsChoice()
    prune: PruneChoice = PruneChoice()
    finetune: FinetuneChoice = FinetuneChoice()
    limits: LimitsChoice = LimitsChoice()
    engine: EngineChoice = EngineChoice()
    advice_from: AdviceOrigin = AdviceOrigin()

    @property
    def needs_ranges(self) -> bool:
        """Whether the calibration data may be needed: for a precision, a search or an improvement."""
        by_search = self.plan.from_goal and self.goal.has_bound
        return self.plan.needs_calibration or by_search or bool(self.improve.methods)
