"""Applies a plan to an OpenVINO model with NNCF. Nodes that are not planned are passed to NNCF as ignored."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quiet import hushed
from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.onnx.program import OnnxProgram
from ace_studio.engine.targets.onnx.quantize import by_scheme, quantize_static, weights_of_one_scale
from ace_studio.engine.targets.onnx.static import MOVING_TYPES, PRODUCT_TYPES, StaticChoice, choose_static
from ace_studio.engine.targets.onnx.tables import lookups, planned_lookups
from ace_studio.engine.targets.openvino.attention import read_onnx
from ace_studio.engine.targets.openvino.library import import_nncf
from ace_studio.engine.targets.openvino.smoothquant import is_asked, is_due, smoothed_if_better
from ace_studio.engine.targets.shared.flat_call import as_numpy
from ace_studio.records.processor import int8_weight_bits
from ace_studio.records.recipes.plan import Precision, WeightGranularity
from ace_studio.records.recipes.recipe import Observer

INT4_SMALLEST_GROUP = 4
"""Smallest group that NNCF tries where the planned one does not divide the row; otherwise the row would stay 8-bit."""
_INNER_NAMES = ("", "/WithoutBiases")
"""OpenVINO splits a node with a bias in two: the product has this suffix, the addition has the node's name."""
_SEQUENCES = ["LSTMSequence", "GRUSequence", "RNNSequence"]
"""Recurrent layers: never planned below fp32, named by OpenVINO itself, and not compilable with quantized weights."""
_FLOAT_TYPES = [*_SEQUENCES, "MVN"]
"""MVN is what OpenVINO makes of a LayerNormalization, under a name of its own, so that its node's name does not keep it
float. A quantized input costs accuracy there, and behind a reduction OpenVINO (2026.4) then gives another shape."""
_WIDENED = (
    "its rows are stored in 8 bits, but beside 8-bit activations OpenVINO widens the table when it opens the model"
)
_WEIGHT_ONLY = (Precision.INT8_WEIGHT, Precision.INT8_DYNAMIC, Precision.INT4_WEIGHT)


def compress_model(
    model: Any, program: OnnxProgram, job: LoweringJob, make_session: Callable[[Any], Any]
) -> tuple[Any, Mapping[str, str]]:
    """The model with every op as planned, and why some ops are not (op id -> why).

    Args:
        model: ``openvino.Model`` that was read from the program's ONNX model; names survive that.
        program: The fp32 model and its owners.
        job: Plan, calibration and reporter.
        make_session: Opens an ONNX model, to read activations during calibration.
    """
    tables, notes = planned_lookups(program, job)
    table_owners = {program.owners[name][0] for name in tables}
    if job.plan.ops_at(Precision.INT8_STATIC):
        examples = job.calibration()
        chosen = choose_static(
            program, job, examples, make_session=make_session, kept=products_behind_maxima(program.model)
        )
        notes = {**chosen.notes, **notes, **dict.fromkeys(table_owners, _WIDENED)}
        if chosen.nodes and _needs_our_grids(program, job, chosen) and not _grids_problem():
            model = _with_our_grids(program, job, chosen)
        elif chosen.nodes:
            model = _quantize_as_asked(model, program, job, chosen, examples)
            notes |= _unheeded_grids(program, job, chosen)
        keep_picked_dims(model)
    if tables:
        model = _compress_weights(model, program, tables, Precision.INT8_WEIGHT, group_size=0)
    for precision in _WEIGHT_ONLY:
        for group_size, ops in _groups(job, precision).items():
            if nodes := set(program.nodes_of(ops)) - tables:
                model = _compress_weights(model, program, nodes, precision, group_size=group_size)
        notes = _unheeded_weights(job, precision) | notes
    return model, notes


def keep_picked_dims(model: Any) -> None:
    """Replace, in place, each Gather of a single position by a Gather that keeps the dimension and a Squeeze.

    OpenVINO (2026.4) moves the scales of an 8-bit product behind a Gather with all of their dimensions, so that the
    result has one dimension too many. It moves them through Gather and Squeeze correctly.
    """
    from openvino import opset13

    for op in [
        op for op in model.get_ops() if op.get_type_name() == "Gather" and op.get_output_element_type(0).is_real()
    ]:
        data, index, axis = (op.input_value(place) for place in range(3))
        is_stored = [one.get_node().get_type_name() == "Constant" for one in (data, index, axis)]
        if is_stored != [False, True, True] or len(index.get_shape()):
            continue
        name = op.get_friendly_name()
        position = opset13.constant(index.get_node().get_data().reshape(1))
        picked = opset13.gather(data, position, axis)
        picked.set_friendly_name(f"{name}/picked")
        squeezed = opset13.squeeze(picked, axis)
        squeezed.set_friendly_name(name)
        op.output(0).replace(squeezed.output(0))


def _needs_our_grids(program: OnnxProgram, job: LoweringJob, chosen: StaticChoice) -> bool:
    """Whether NNCF cannot do it: other ranges, NaN among the values, one scale per weight, symmetric activations."""
    is_plain = job.ranges.observer is Observer.MIN_MAX
    return (
        not (is_plain and chosen.is_finite)
        or bool(chosen.symmetric)
        or bool(weights_of_one_scale(program, job, chosen))
    )


def _grids_problem() -> str:
    missing = importlib.util.find_spec("onnxruntime") is None
    return "onnxruntime, whose quantizer writes such grids, is not installed" if missing else ""


def _with_our_grids(program: OnnxProgram, job: LoweringJob, chosen: StaticChoice) -> Any:
    """The model quantized as for ONNX Runtime; OpenVINO runs it as fast as a model of NNCF."""
    quantized = quantize_static(
        copy.deepcopy(program.model), chosen, shared_scale=weights_of_one_scale(program, job, chosen)
    )
    return read_onnx(quantized)


def _unheeded_grids(program: OnnxProgram, job: LoweringJob, chosen: StaticChoice) -> dict[str, str]:
    """Op id -> the quantization parameters that NNCF used instead of the planned ones."""
    if not _needs_our_grids(program, job, chosen):
        return {}
    reason = f"its grids are affine, per channel, from smallest to largest value: {_grids_problem()}"
    return dict.fromkeys(job.plan.ops_at(Precision.INT8_STATIC), reason)


def _groups(job: LoweringJob, precision: Precision) -> dict[int, frozenset[str]]:
    """The ops at a weight-only precision by the group size that they get."""
    return by_scheme(job, precision, lambda scheme: scheme.group_size if precision is Precision.INT4_WEIGHT else 0)


def _unheeded_weights(job: LoweringJob, precision: Precision) -> dict[str, str]:
    """Op id -> what OpenVINO does instead of the planned scheme of a weight-only op."""
    notes: dict[str, str] = {}
    for op_id in job.plan.ops_at(precision):
        scheme = job.plan.scheme_of(op_id)
        if precision is Precision.INT8_WEIGHT and scheme.group_size:
            notes[op_id] = "8-bit weights have one scale per channel in OpenVINO, not groups"
        elif precision is Precision.INT8_DYNAMIC and scheme.weights is WeightGranularity.PER_TENSOR:
            notes[op_id] = "weights of products on the fly have one scale per channel in OpenVINO"
    return notes


def _quantize_as_asked(
    model: Any, program: OnnxProgram, job: LoweringJob, chosen: StaticChoice, examples: Sequence[Example]
) -> Any:
    """The model quantized by NNCF, with SmoothQuant if that was asked for or is likely to help, and does."""

    def quantize(used: Sequence[Example], is_smoothed: bool) -> Any:
        feed = CalibrationFeed(program.input_names, used, job.reporter)
        return _quantize(model.clone(), program, chosen, feed, is_smoothed=is_smoothed)

    if is_asked(job) or is_due(job, examples):
        return smoothed_if_better(model, program, job, examples, quantize=quantize)
    return quantize(examples, False)


def _quantize(
    model: Any, program: OnnxProgram, chosen: StaticChoice, calibration: CalibrationFeed, *, is_smoothed: bool
) -> Any:
    nncf = import_nncf()
    from nncf.quantization.advanced_parameters import OverflowFix, QuantizationParameters
    from nncf.quantization.range_estimator import RangeEstimatorParametersSet

    with hushed(), short_ranges_kept():
        return nncf.quantize(
            model,
            nncf.Dataset(calibration),
            preset=nncf.QuantizationPreset.MIXED,
            subset_size=len(calibration),
            fast_bias_correction=True,
            model_type=nncf.ModelType.TRANSFORMER if is_smoothed else None,
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                # NNCF's default, the mean of the samples' extremes, cuts off what the largest sample needs:
                # with two samples it left 20 dB of an MLP instead of 43.
                activations_range_estimator_params=RangeEstimatorParametersSet.MINMAX,
                activations_quantization_params=(
                    QuantizationParameters(per_channel=False) if _reads_moved_channels(program, chosen) else None
                ),
                overflow_fix=OverflowFix.ENABLE if int8_weight_bits() < 8 else OverflowFix.DISABLE,
            ),
            ignored_scope=nncf.IgnoredScope(names=_ignored_static(program, chosen), types=_FLOAT_TYPES, validate=False),
        )


def _reads_moved_channels(program: OnnxProgram, chosen: StaticChoice) -> bool:
    """Whether a grouped convolution reads what a transposition or a reshape moved.

    NNCF (3.4) gives the channels that such a convolution reads scales of their own and puts them in front of what moves
    the values, on the same axis, where positions may lie: their number then is that of the first example.
    """
    makers = {output: node for node in program.model.graph.node for output in node.output}

    def is_moved(value: str) -> bool:
        maker = makers.get(value)
        if maker is None or maker.op_type not in MOVING_TYPES:
            return False
        return maker.op_type in ("Reshape", "Transpose") or is_moved(maker.input[0])

    return any(
        node.op_type == "Conv" and node.name in chosen.nodes and is_moved(node.input[0])
        for node in program.model.graph.node
        if any(attribute.name == "group" and attribute.i > 1 for attribute in node.attribute)
    )


def _ignored_static(program: OnnxProgram, chosen: StaticChoice) -> list[str]:
    """Names of all nodes that must stay float.

    Nodes that only move values are not listed, because NNCF looks through them. Lookups are, because NNCF would store
    their tables in 8 bits even if that is not planned.
    """
    picking = {node.name for node in lookups(program.model)}
    kept = [
        node
        for node in program.model.graph.node
        if node.name in picking or (node.name not in chosen.nodes and node.op_type not in MOVING_TYPES)
    ]
    return _layer_names(kept)


def _layer_names(nodes: Sequence[Any]) -> list[str]:
    """Every name that OpenVINO may have given to these nodes: the node's, the inner one, or that of a model output."""
    return [f"{node.name}{suffix}" for node in nodes for suffix in _INNER_NAMES] + [
        f"{output}{suffix}" for node in nodes for output in node.output for suffix in _INNER_NAMES
    ]


def _name_apart(model: Any) -> None:
    """Give every node a unique name, in place.

    Where layers share a bias, NNCF's bias correction leaves two nodes with one name and finds neither of them (3.4).
    """
    taken: set[str] = set()
    for node in model.get_ops():
        name, count = node.get_friendly_name(), 1
        while name in taken:
            name, count = f"{node.get_friendly_name()}.{count}", count + 1
        if name != node.get_friendly_name():
            node.set_friendly_name(name)
        taken.add(name)


def _compress_weights(
    model: Any, program: OnnxProgram, nodes: Collection[str], precision: Precision, *, group_size: int
) -> Any:
    nncf = import_nncf()
    _name_apart(model)
    ignored = _layer_names([node for node in program.model.graph.node if node.name not in nodes])
    scope = nncf.IgnoredScope(names=ignored, types=_SEQUENCES, validate=False)
    with hushed():
        if precision is not Precision.INT4_WEIGHT:
            return nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM, ignored_scope=scope)
        return nncf.compress_weights(
            model,
            mode=nncf.CompressWeightsMode.INT4_ASYM,
            ratio=1.0,
            group_size=group_size or -1,
            all_layers=True,
            ignored_scope=scope,
            advanced_parameters=nncf.AdvancedCompressionParameters(
                group_size_fallback_mode=nncf.GroupSizeFallbackMode.ADJUST, min_adjusted_group_size=INT4_SMALLEST_GROUP
            ),
        )


class CalibrationFeed:
    """The calibration examples for NNCF, which iterates over them several times. Reports progress; can be cancelled."""

    def __init__(self, names: Sequence[str], examples: Sequence[Example], reporter: Reporter) -> None:
        self._names = names
        self._examples = examples
        self._reporter = reporter

    def __len__(self) -> int:
        return len(self._examples)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for index, example in enumerate(self._examples):
            self._reporter.advance(index / len(self), f"calibrating, example {index + 1} of {len(self)}")
            yield {name: as_numpy(leaf) for name, leaf in zip(self._names, example.tensors(), strict=True)}


_REDUCTIONS = frozenset(
    {"ReduceMax", "ReduceMin", "GlobalMaxPool", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
     "ReduceLogSumExp"}
)  # fmt: skip
_PASSED = MOVING_TYPES | {"Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "Gelu", "Add", "Sub", "Mul", "Div"}
"""Node types that OpenVINO computes with a reduction, or looks through."""
_REASON = "it reads a maximum or the like, in whose kernel OpenVINO would round every step to 8 bits"


def products_behind_maxima(model: Any) -> dict[str, str]:
    """Name of each node that must stay float -> why.

    OpenVINO (2026.4) rounds the result of a reduction inside of its kernel. Sums and means have a buffer of floats; the
    others collect in the rounded result, step by step: a linear layer behind ``amax`` had 14 dB instead of 48.
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    collected: set[str] = set()
    found = {}
    for node in model.graph.node:
        computed = [name for name in node.input if name and name not in stored]
        if node.op_type in PRODUCT_TYPES and collected.intersection(computed):
            found[node.name] = _REASON
        elif node.op_type in _REDUCTIONS or (collected.intersection(computed) and _is_passed(node, len(computed))):
            collected.update(node.output)
    return found


def _is_passed(node: Any, computed: int) -> bool:
    """Whether OpenVINO may round at the reduction what is rounded behind the node."""
    return node.op_type in _PASSED and (computed == 1 or node.op_type == "Concat")


_OF_NOTHING = 8e-5
"""Range that a value gets that was 0 throughout."""


@contextlib.contextmanager
def short_ranges_kept() -> Iterator[None]:
    """Let NNCF give every range the grid that it has, however short it is, while the block runs.

    NNCF (3.4) moves both ends of an affine range below 8e-4 by 8e-4, and ends a symmetric one at 8e-5 or beyond: of the
    256 steps, small values were left a few, or one. In a depth estimator with values of 1e-5 this cost 10 dB.
    """
    from nncf.quantization import fake_quantize

    with (
        replaced_attribute(fake_quantize, "fix_zero_filters_symmetric", _symmetric_end),
        replaced_attribute(fake_quantize, "fix_zero_filters_asymmetric", _affine_ends),
    ):
        yield


def _symmetric_end(max_values: Any, eps: float = 0.01) -> Any:
    from nncf.tensor import functions as fns

    largest = fns.max(max_values)
    return fns.maximum(fns.where(largest > 0, largest * eps, _OF_NOTHING), max_values)


def _affine_ends(min_values: Any, max_values: Any, eps: float = 0.0) -> tuple[Any, Any]:
    from nncf.tensor import functions as fns

    del eps
    missing = fns.where(max_values > min_values, 0.0, _OF_NOTHING)
    return min_values - missing, max_values + missing
