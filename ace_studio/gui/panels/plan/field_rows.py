"""The rows of the forms: the keys of the smaller tables of the recipe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ace_studio.gui.style import tr, translate_fields
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import FinetuneMethod, ImproveMethod, PruneMethod
from ace_studio.records.tensors import DimVerdict
from ace_studio.session.document import Document


def functions_of(document: Document) -> Sequence[tuple[str, str]]:
    """The functions of the opened file, as text and value."""
    entries = document.file.entries if document.file else ()
    return [(f"{one.name}()", one.name) for one in entries if one.kind == "function"]


class FieldKind(StrEnum):
    """How a key is edited."""

    CHOICE = "choice"
    """One of a few words."""
    NUMBER = "number"
    COUNT = "count"
    """A whole number."""
    FLAG = "flag"
    WORDS = "words"
    """Several texts, separated by commas."""
    TEXT = "text"
    TICKS = "ticks"
    """Any of a few words, in their order."""
    COUNTS = "counts"
    """Several whole numbers from 1 on, separated by commas."""
    PAIRS = "pairs"
    """Several ``name = value``, separated by commas."""
    NAME = "name"
    """A name that is typed or chosen from the known ones; perhaps a file."""


@dataclass(frozen=True, kw_only=True)
class FieldRow:
    """One key of one table of the recipe."""

    table: str
    """``prune``, or ``measure.decode`` for a table in a table."""
    key: str
    text: str
    kind: FieldKind
    options: tuple[tuple[str, str], ...] = ()
    """Value and what it means, for choices and ticks."""
    low: float = 0.0
    high: float = 1e6
    decimals: int = 3
    suffix: str = ""
    unset: str = ""
    """Words for the lowest number if it stands for None, and for an empty text."""
    tip: str = ""
    about: str = ""
    """The line below the editor, if the value has no meaning of its own."""
    takes_file: bool = False
    """A name that may be a file instead."""
    known: Callable[[Document], Sequence[tuple[str, str]]] = functions_of
    """Names that are offered, each as text and value."""
    why_grey: Callable[[Document], str] = lambda _: ""
    """Why the key cannot be edited now; empty if it can."""
    problem: Callable[[Document], str] = lambda _: ""
    """What is wrong with the recipe's value; empty if nothing is."""

    def __post_init__(self) -> None:
        translate_fields(self, "text", "unset", "tip", "about")
        object.__setattr__(self, "options", tuple((value, tr(meaning)) for value, meaning in self.options))

    @property
    def name(self) -> str:
        """``table.key``."""
        return f"{self.table}.{self.key}"


def _uses(plan: Plan, wanted: frozenset[Precision]) -> bool:
    return plan.from_goal or bool(wanted & plan.precisions)


_INT8 = frozenset({Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT})
_GROUPED = frozenset({Precision.INT4_WEIGHT, Precision.INT8_WEIGHT})
_STATIC = frozenset({Precision.INT8_STATIC})


def _only_for(wanted: frozenset[Precision], words: str) -> Callable[[Document], str]:
    return lambda document: (
        "" if _uses(document.recipe.plan, wanted) else tr("Only for {kind}, and the plan has none", kind=tr(words))
    )


def _only_percentile(document: Document) -> str:
    is_one = document.recipe.calibration.observer == "percentile"
    return _only_for(_STATIC, "int8-static")(document) or ("" if is_one else "Only for the observer percentile")


def _no_learning(document: Document) -> str:
    is_on = ImproveMethod.LEARNED_ROUNDING in document.recipe.improve.methods
    return "" if is_on else "Only for learned rounding"


def _no_pruning(document: Document) -> str:
    return "Choose a method first" if document.recipe.prune.method is PruneMethod.NONE else ""


def _only_pruning(method: PruneMethod) -> Callable[[Document], str]:
    return lambda document: (
        _no_pruning(document)
        or ("" if document.recipe.prune.method is method else tr("Only for {method}", method=method))
    )


def _no_amount(document: Document) -> str:
    is_pattern = document.recipe.prune.method is PruneMethod.N_M
    return _no_pruning(document) or ("n:m: the pattern sets the amount" if is_pattern else "")


def _no_tuning(document: Document) -> str:
    return "Choose a method first" if document.recipe.finetune.method is FinetuneMethod.NONE else ""


def _no_metric(document: Document) -> str:
    return _has_function(document) or ("" if document.recipe.evaluate.metric else "Choose a metric first")


def _has_function(document: Document) -> str:
    return "Your own function measures accuracy: see Model" if document.recipe.evaluate.function else ""


def _input_names(document: Document) -> tuple[str, ...]:
    """The inputs of the model, from the last trace or the shape table."""
    if document.capture is not None and document.capture.inputs:
        return tuple(one.name for one in document.capture.inputs)
    rows = document.recipe.inputs.rows
    return tuple(rows[0]) if rows else ()


def _inputs(document: Document) -> Sequence[tuple[str, str]]:
    return [(name, name) for name in _input_names(document)]


def _no_such_input(name: str, document: Document) -> str:
    known = _input_names(document)
    if not known or any(one == name or one.startswith(f"{name}.") for one in known):
        return ""
    listed = ", ".join(known[:6]) + (", …" if len(known) > 6 else "")
    return tr("The model has no input '{name}'. It takes {listed}.", name=name, listed=listed)


def _unknown_input(key: str) -> Callable[[Document], str]:
    def problem(document: Document) -> str:
        name = str(getattr(document.recipe.measure.decode, key))
        return _no_such_input(name, document) if name else ""

    return problem


def _no_token(document: Document) -> str:
    return "" if document.recipe.measure.decode.token else "Name the token input first"


def _unfed(document: Document) -> str:
    feed = document.recipe.measure.decode.feed
    if not feed:
        return "Nothing is fed back: each step would forget the earlier ones. Write for example cache = 1."
    return next((found for name in feed if (found := _no_such_input(name, document))), "")


def _no_logits(document: Document) -> str:
    return "" if document.recipe.measure.decode.logits else "Name an output: 0 is the first one."


def _fixed_batch(document: Document) -> str:
    capture = document.capture
    if not document.recipe.measure.batches or capture is None or not capture.inputs or document.is_capture_stale:
        return ""
    first = capture.inputs[0]
    batch = next((dim for dim in first.dims if dim.index == 0), None)
    if batch is not None and batch.verdict is DimVerdict.DYNAMIC:
        return ""
    return tr(
        "{name} · 0 is not dynamic in this graph. Add an example of another size under Inputs, and trace again.",
        name=first.name,
    )


_KIND = FieldKind
SCHEME_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(table="plan", key="weights", text="Weights", kind=_KIND.CHOICE, why_grey=_only_for(_INT8, "8-bit ops"),
             options=(("per-channel", "a scale per output channel"), ("per-tensor", "one scale for all: coarser")),
             tip="Per tensor ruins some models that per channel keeps. OpenVINO's int8-dynamic is always per channel"),
    FieldRow(table="plan", key="activations", text="Activations", kind=_KIND.CHOICE,
             why_grey=_only_for(_STATIC, "int8-static"), tip="int8-dynamic is always affine",
             options=(("affine", "a zero point: fits one-sided ranges"), ("symmetric", "no zero point"))),
    FieldRow(table="plan", key="group_size", text="Group size", kind=_KIND.CHOICE,
             why_grey=_only_for(_GROUPED, "weight-only ops"),
             tip="ONNX Runtime allows at most 256; OpenVINO's int8-weight only whole channels",
             options=(("0", "all weights of a channel share a scale"),
                      *((str(2**n), tr("{count} weights share a scale", count=2**n)) for n in range(4, 9)))),
    FieldRow(table="plan", key="rest", text="The rest", kind=_KIND.CHOICE, why_grey=_only_for(_INT8, "8-bit ops"),
             options=(("fp32", "as eager"), ("bf16", "faster where the processor has it"), ("fp16", "likewise")),
             tip="Precision of ops that the target cannot run as planned, such as a softmax"),
)  # fmt: skip
CALIBRATION_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(table="calibration", key="observer", text="Ranges by", kind=_KIND.CHOICE,
             why_grey=_only_for(_STATIC, "int8-static"),
             options=(("min-max", "the observed extremes"), ("percentile", "without rare extremes"),
                      ("mse", "least squared error"), ("entropy", "least change of the distribution"))),
    FieldRow(table="calibration", key="percentile", text="Percentile", kind=_KIND.NUMBER, low=50.0, high=100.0,
             decimals=3, suffix=" %", why_grey=_only_percentile),
    FieldRow(table="calibration", key="subset", text="Samples", kind=_KIND.CHOICE,
             options=(("first", "the first ones"), ("spread", "spread over all"), ("random", "at random, by a seed"))),
)  # fmt: skip
IMPROVE_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(table="improve", key="methods", text="Methods", kind=_KIND.TICKS,
             options=(("equalize", "even out the ranges of neighbouring layers"),
                      ("smoothquant", "move outliers from activations into weights"),
                      ("bias-correction", "correct the mean error of each output"),
                      ("compensate", "correct the size and the mean error of each output"),
                      ("gptq", "round weights one by one and adjust the rest"),
                      ("awq", "scale the weights that matter before rounding"),
                      ("learned-rounding", "learn which weights to round up and which down")),
             tip="Each method is kept only if it helps; the results show by how much"),
    FieldRow(table="improve", key="by_search", text="Search may use them", kind=_KIND.FLAG,
             tip="A search for a goal tries these methods, if none is ticked, before it raises the precision of ops"),
    FieldRow(table="improve", key="max_seconds", text="Time limit", kind=_KIND.NUMBER, low=1.0, high=1e6, decimals=0,
             suffix=" s", why_grey=_no_learning, tip="The most time that learned rounding takes to learn, per plan"),
)  # fmt: skip
SENSITIVITY_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(table="sensitivity", key="scan", text="Scan in a run", kind=_KIND.CHOICE,
             options=(("auto", "if the goal needs it"), ("on", "always"), ("off", "never"))),
    FieldRow(table="sensitivity", key="probes", text="Probes", kind=_KIND.COUNT, low=1, high=64,
             tip="Random directions of the outputs; more are surer and slower"),
    FieldRow(table="sensitivity", key="samples", text="Samples", kind=_KIND.COUNT, low=1, high=1024),
)  # fmt: skip
PRUNE_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(table="prune", key="method", text="Remove", kind=_KIND.CHOICE,
             options=(("none", "nothing is removed"), ("unstructured", "single weights, the smallest first"),
                      ("n:m", "n of every m weights"), ("structured", "whole channels: smaller layers"))),
    FieldRow(table="prune", key="amount", text="Amount", kind=_KIND.NUMBER, low=0.0, high=0.99, decimals=2,
             why_grey=_no_amount, tip="As a fraction of the weights, or of the channels"),
    FieldRow(table="prune", key="pattern", text="Pattern", kind=_KIND.CHOICE, why_grey=_only_pruning(PruneMethod.N_M),
             options=(("2:4", "2 of 4 stay"), ("1:4", "1 of 4 stays"), ("4:8", "4 of 8 stay"))),
    FieldRow(table="prune", key="importance", text="Rank by", kind=_KIND.CHOICE, why_grey=_no_pruning,
             options=(("magnitude", "size"), ("taylor", "size times gradient"))),
    FieldRow(table="prune", key="round_to", text="Multiples of", kind=_KIND.COUNT, low=1, high=256,
             why_grey=_only_pruning(PruneMethod.STRUCTURED), tip="Of the remaining channels"),
    FieldRow(table="prune", key="ignore", text="Never touch", kind=_KIND.WORDS, unset="module:classifier, …",
             why_grey=_no_pruning, tip="Patterns as in the rules of the plan"),
)  # fmt: skip
FINETUNE_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(table="finetune", key="method", text="Train", kind=_KIND.CHOICE,
             options=(("none", "not at all"), ("distill", "towards the outputs of the original"),
                      ("qat", "with rounding in the loop"), ("train", "towards the labels of your data"))),
    FieldRow(table="finetune", key="data", text="Data", kind=_KIND.NAME, why_grey=_no_tuning,
             unset="the calibration inputs"),
    FieldRow(table="finetune", key="loss", text="Loss", kind=_KIND.NAME, why_grey=_no_tuning, unset="by method"),
    FieldRow(table="finetune", key="epochs", text="Epochs", kind=_KIND.COUNT, low=1, high=10_000, why_grey=_no_tuning),
    FieldRow(table="finetune", key="learning_rate", text="Learning rate", kind=_KIND.NUMBER, low=0.0, high=10.0,
             decimals=7, why_grey=_no_tuning),
    FieldRow(table="finetune", key="held_out", text="Held out", kind=_KIND.NUMBER, low=0.01, high=0.9, decimals=2,
             why_grey=_no_tuning, tip="Fraction of the batches for scoring instead of training"),
    FieldRow(table="finetune", key="max_seconds", text="Time limit", kind=_KIND.NUMBER, low=1.0, high=1e6, decimals=0,
             suffix=" s", why_grey=_no_tuning),
    FieldRow(table="finetune", key="seed", text="Seed", kind=_KIND.COUNT, low=0, high=2**31 - 1, why_grey=_no_tuning),
)  # fmt: skip
EVALUATE_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(table="evaluate", key="metric", text="Metric", kind=_KIND.CHOICE, why_grey=_has_function,
             options=(("", "fidelity only"), ("top-1", "accuracy of the best class"),
                      ("top-5", "accuracy of the best five classes"),
                      ("f1", "macro F1"), ("auc", "area under the ROC curve"), ("spearman", "rank correlation"),
                      ("mse", "mean squared error"), ("perplexity", "of language models"))),
    FieldRow(table="evaluate", key="data", text="Labelled data", kind=_KIND.NAME, why_grey=_no_metric,
             unset="none", takes_file=True),
    FieldRow(table="evaluate", key="output", text="Output", kind=_KIND.TEXT, why_grey=_no_metric,
             unset="the first tensor", tip="The output to score, as a path such as 0 or logits"),
)  # fmt: skip
MEASURE_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(table="measure", key="profile", text="Profile of every op", kind=_KIND.FLAG,
             about="Times every op against the ceilings of this machine. A run takes a little longer.",
             tip="Where the time goes, op by op, in the original and in every target"),
    FieldRow(table="measure", key="batches", text="Batch sizes", kind=_KIND.COUNTS, unset="none, or 1, 8, 32",
             problem=_fixed_batch, about="Each is timed too, in samples per second.",
             tip="Throughput at these sizes; the batch must be dynamic"),
)  # fmt: skip
DECODE_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(table="measure.decode", key="token", text="Token input", kind=_KIND.NAME, unset="no step model",
             known=_inputs, problem=_unknown_input("token"), tip="The input that takes the last token, [batch, 1]",
             about="For a model that is one decoder step: the input of the last token."),
    FieldRow(table="measure.decode", key="feed", text="Feed back", kind=_KIND.PAIRS, unset="cache = 1",
             why_grey=_no_token, problem=_unfed, about="Inputs, and the output that feeds each at the next step.",
             tip="A name stands for every tensor below it: cache for cache.0.0, cache.0.1, ..."),
    FieldRow(table="measure.decode", key="logits", text="Scores", kind=_KIND.TEXT, unset="0", why_grey=_no_token,
             problem=_no_logits, about="The output with the scores of the next token.",
             tip="As a path such as 0 or logits"),
    FieldRow(table="measure.decode", key="position", text="Position", kind=_KIND.NAME, unset="none", known=_inputs,
             why_grey=_no_token, problem=_unknown_input("position"), tip="The input that counts up at every step"),
    FieldRow(table="measure.decode", key="mask", text="Mask", kind=_KIND.NAME, unset="none", known=_inputs,
             why_grey=_no_token, problem=_unknown_input("mask"),
             tip="The input that gets one more 1 at its end at every step"),
    FieldRow(table="measure.decode", key="tokens", text="Tokens", kind=_KIND.COUNT, low=2, high=100_000,
             why_grey=_no_token, tip="Number of tokens to decode; 32 to 128 are usual"),
)  # fmt: skip
