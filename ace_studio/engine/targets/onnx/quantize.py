"""Applies a plan to an ONNX model: quantize-dequantize pairs, dynamic integer products, packed weights.

ONNX Runtime fuses only this pattern: unsigned activations, signed weights per channel, a quantized output of every
convolution and product, behind its ReLU, and an int32 bias whose scale is the product of both scales.
"""

import copy
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ace_studio.engine.ops.onnx_order import sort_nodes
from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.onnx import static
from ace_studio.engine.targets.onnx.products import as_matmuls, drop_unused_constants, store_transposed, unfit
from ace_studio.engine.targets.onnx.program import OnnxProgram
from ace_studio.engine.targets.onnx.tables import pack_tables, planned_lookups
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.ops import is_weighted
from ace_studio.records.processor import int8_weight_bits
from ace_studio.records.recipes.plan import WEIGHT_BITS, ActivationGrid, Precision, Scheme, WeightGranularity

FLOAT_GIVING_TYPES = frozenset({"Gemm", "MatMul"})
"""Products with an 8-bit kernel that can give a float result."""
LARGEST_BLOCK = 256
"""The most weights that share one scale in ONNX Runtime's packed kernels; 32 is what they are best at."""
_HIDDEN_GEMM = "GemmThatStays"
"""Temporary type of ``Gemm`` nodes, so that the dynamic quantizer does not split them."""
INT8_ACCUMULATION = 4
"""MatMulNBits accuracy level 4: activations are quantized to 8 bits on the fly. Level 0 is several times slower."""


def quantize_program(
    program: OnnxProgram, job: LoweringJob, make_session: Callable[[Any], Any]
) -> tuple[Any, Mapping[str, str]]:
    """A copy of the program's model in which every op runs as planned, and op id -> why an op does not.

    Args:
        program: The fp32 model.
        job: Plan, calibration and reporter.
        make_session: Opens a model, to read activations during calibration.

    Raises: AceError(UNSUPPORTED) if the quantizer changed nothing, or the model is quantized already.
    """
    if job.plan.precisions - {Precision.FP32}:
        program = job.once(f"onnx_stored_factors_{id(program)}", lambda: with_stored_factors(program))
    model = copy.deepcopy(program.model)
    tables, notes = planned_lookups(program, job)
    pack_tables(model, tables)
    drop_unused_constants(model)
    notes = _unfit_products(program, job) | notes
    for planned, bits in WEIGHT_BITS.items():
        for group_size, ops in by_scheme(job, planned, lambda scheme: scheme.group_size).items():
            block, reason = weight_block(group_size)
            notes |= {op: reason for op in ops if op not in notes} if reason else {}
            if nodes := [name for name in program.nodes_of(ops) if name not in tables]:
                model = _pack_weights(model, nodes, bits=bits, block=block)
    for granularity, ops in by_scheme(job, Precision.INT8_DYNAMIC, lambda scheme: scheme.weights).items():
        if nodes := [name for name in program.nodes_of(ops) if name not in tables]:
            model = _quantize_dynamic(model, nodes, is_per_channel=granularity is WeightGranularity.PER_CHANNEL)
        asked = {op for op in ops if job.plan.scheme_of(op).activations is ActivationGrid.SYMMETRIC}
        notes |= dict.fromkeys(asked, "ONNX Runtime finds dynamic grids with a zero point, so this one is affine")
    if job.plan.ops_at(Precision.INT8_STATIC):
        _refuse_what_is_quantized(program.model)
        chosen = static.choose_static(program, job, job.calibration(), make_session=make_session)
        notes = {**chosen.notes, **notes}
        if chosen.nodes:
            model = quantize_static(model, chosen, shared_scale=weights_of_one_scale(program, job, chosen))
    sort_nodes(model.graph)
    if job.plan.precisions - {Precision.FP32} and _node_types(model) == _node_types(program.model):
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            "The quantizer changed nothing",
            why=_why_unchanged(job, notes),
            remedy="Plan fp32 for this target, or another target; a product is 8-bit if its second factor is a stored "
            "matrix, as in torch.nn.functional.linear.",
        )
    return model, notes


def _refuse_what_is_quantized(model: Any) -> None:
    """A file may hold the quantizer's pairs, as an artifact opened again does: new ones would have their names."""
    if any(node.op_type == "QuantizeLinear" and node.name.endswith("_QuantizeLinear") for node in model.graph.node):
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            "The file is quantized already",
            why="it has QuantizeLinear nodes; a second rounding to 8 bits makes it no smaller and no faster",
            remedy="Plan fp32, which runs it as it is, or open the model that it was made from.",
        )


def with_stored_factors(program: OnnxProgram) -> OnnxProgram:
    """The program with a stored factor for each product that reads a transposed weight; itself if there is none."""
    model = copy.deepcopy(program.model)
    readers = {node.name for node in model.graph.node if node.op_type == "MatMul"}
    return dataclasses.replace(program, model=model) if store_transposed(model, readers) else program


def _unfit_products(program: OnnxProgram, job: LoweringJob) -> dict[str, str]:
    """Op id -> why its product stays float, for the planned ops that no integer or packed kernel takes."""
    planned = program.nodes_of(frozenset().union(*map(job.plan.ops_at, (Precision.INT8_DYNAMIC, *WEIGHT_BITS))))
    constants = {tensor.name: tensor for tensor in program.model.graph.initializer}
    nodes = [node for node in program.model.graph.node if node.name in set(planned)]
    return {program.owners[node.name][0]: reason for node in nodes if (reason := unfit(node, constants))}


def _why_unchanged(job: LoweringJob, notes: Mapping[str, str]) -> str:
    """What stands in the way of every planned op, and of the convolutions and products that were not planned."""
    refused = {op_id: one.reason for op_id, one in job.plan.ops.items() if one.is_refused}
    table = job.captured.table
    heavy = {table.op_id[row] for row in table.op_rows() if is_weighted(table.op[row])}
    reasons: dict[str, list[str]] = {}
    for op_id, reason in (refused | dict(notes)).items():
        if op_id in heavy:
            reasons.setdefault(reason, []).append(op_id)
    words = [f"{', '.join(ids[:3])}{' and others' if len(ids) > 3 else ''}: {why}" for why, ids in reasons.items()]
    nothing = "the model has no convolution and no matrix product" if not heavy else ""
    return "; ".join(words) or nothing or "no node of a planned op is of a type that it can quantize"


def by_scheme(job: LoweringJob, precision: Precision, key: Callable[[Scheme], Any]) -> dict[Any, frozenset[str]]:
    """The ops planned at a precision, grouped by a property of their schemes."""
    found: dict[Any, set[str]] = {}
    for op_id in job.plan.ops_at(precision):
        found.setdefault(key(job.plan.scheme_of(op_id)), set()).add(op_id)
    return {value: frozenset(ops) for value, ops in found.items()}


def weight_block(group_size: int) -> tuple[int, str]:
    """The block size of the packed kernels for a group size, and the reason if it differs from the group size."""
    if 0 < group_size <= LARGEST_BLOCK:
        return group_size, ""
    asked = f"groups of {group_size}" if group_size else "one group per channel"
    return LARGEST_BLOCK, f"its weights are in groups of {LARGEST_BLOCK}, not {asked}: no packed kernel is wider"


def weights_of_one_scale(program: OnnxProgram, job: LoweringJob, chosen: static.StaticChoice) -> frozenset[str]:
    """Names of the weights with one scale per tensor: planned so, or of a grouped transposed convolution.

    Of the latter, channels of several groups lie at one index of the weight, so no axis holds one scale per channel.
    """
    constants = {tensor.name for tensor in program.model.graph.initializer}

    def has_one_scale(node: Any) -> bool:
        schemes = [job.plan.scheme_of(op) for op in program.owners.get(node.name, ())]
        is_grouped = node.op_type == "ConvTranspose" and any(
            one.name == "group" and one.i > 1 for one in node.attribute
        )
        return is_grouped or any(scheme.weights is WeightGranularity.PER_TENSOR for scheme in schemes)

    nodes = [node for node in program.model.graph.node if node.name in chosen.nodes and has_one_scale(node)]
    return frozenset(name for node in nodes for name in node.input[:2] if name in constants)


def _node_types(model: Any) -> list[str]:
    return [node.op_type for node in model.graph.node]


def quantize_static(model: Any, chosen: static.StaticChoice, *, shared_scale: Collection[str]) -> Any:
    """The model with pairs around the chosen nodes; the constants in ``shared_scale`` get one scale for all channels.

    The bias of a ``MatMul`` is added in float, and so is what goes on behind it.
    """
    from onnx import helper
    from onnxruntime.quantization import CalibrationMethod, QuantType
    from onnxruntime.quantization.calibrate import TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    ranges = chosen.ranges
    kinds = {name: info.type.tensor_type.elem_type for name, info in static.watched_values(model).items()}
    types = {name: helper.tensor_dtype_to_np_dtype(kind) for name, kind in kinds.items()}  # that of the scale
    bounds = {name: (min(low, 0.0), max(high, 0.0)) for name, (low, high) in ranges.items()}
    data = {
        name: tuple(np.asarray(bound, types.get(name, np.float32)) for bound in pair) for name, pair in bounds.items()
    }
    makers = {value: node.name for node in model.graph.node for value in node.output}
    nodes = without_biases(model, chosen.nodes)
    keep_biases_apart(model, nodes)
    with hushed():
        quantizer = QDQQuantizer(
            model,
            True,  # per channel
            int8_weight_bits() < 8,
            QuantType.QInt8,
            QuantType.QUInt8,
            TensorsData(CalibrationMethod.MinMax, data),
            sorted(nodes),
            [],
            sorted(static.PRODUCT_TYPES | static.FOLLOWING_TYPES | static.GATE_TYPES),
            {
                "WeightSymmetric": True,
                "ActivationSymmetric": False,  # ranges around 0 were made so before
                # A grid around 0 does not end at 0, so the ReLU in front of it must stay.
                "QDQKeepRemovableActivations": bool(chosen.symmetric),
                "TensorQuantOverrides": {name: [{}] for name in sorted({*shared_scale, *_stacks(model)})},
            },
        )
        quantizer.quantize_model()
    drop_idle_pairs(quantizer.model.model, nodes, makers=makers)
    read_float_values(quantizer.model.model, nodes)
    shield_float_products(quantizer.model.model, nodes)
    return quantizer.model.model


def _stacks(model: Any) -> set[str]:
    """Names of the constants that are stacks of matrices: the kernel takes one scale for them, or one per element."""
    stacks = {tensor.name for tensor in model.graph.initializer if len(tensor.dims) > 2}
    return stacks & {node.input[1] for node in model.graph.node if node.op_type == "MatMul"}


def without_biases(model: Any, chosen: frozenset[str]) -> frozenset[str]:
    """The chosen nodes without the sums of a ``MatMul`` and a constant, and without what only follows those.

    The kernel of the integer ``MatMul`` has a float result and adds the bias itself. A quantized ``Add`` would round
    the product, the bias and the sum to 8 bits.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    products = {value for node in model.graph.node if node.op_type == "MatMul" for value in node.output}
    biases = {
        node.name
        for node in model.graph.node
        if node.op_type == "Add"
        and any(name in constants for name in node.input)
        and any(name in products for name in node.input)
    }
    leading = {node.name for node in model.graph.node if node.op_type in static.PRODUCT_TYPES and node.name in chosen}
    return frozenset(static.with_followers(model, chosen - biases, leading, constants))


def keep_biases_apart(model: Any, quantized: frozenset[str]) -> None:
    """Keep, in place, the bias behind a quantized ``MatMul`` out of reach of ONNX Runtime's merging into a ``Gemm``.

    With known sizes, and always for matrices, ONNX Runtime makes a ``Gemm`` of both before it looks for 8-bit products.
    That ``Gemm`` has a float bias, so it computes in float and dequantizes its weights at every call: two transformer
    blocks took 7.5 times as long. A ``Max`` of one value in between prevents that.
    """
    import onnx

    sizes = {
        info.name: [one.dim_value for one in info.type.tensor_type.shape.dim]
        for info in (*model.graph.value_info, *model.graph.output)
    }
    products = {node.output[0] for node in model.graph.node if node.op_type == "MatMul" and node.name in quantized}
    merged = {name for name in products if len(sizes.get(name, ())) < 3 or all(sizes[name])}
    constants = {tensor.name for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        place = next((at for at, name in enumerate(node.input) if node.op_type == "Add" and name in merged), None)
        if place is not None and constants.intersection(node.input):
            apart = f"{node.name}_product"
            nodes.append(onnx.helper.make_node("Max", [node.input[place]], [apart], name=apart))
            node.input[place] = apart
        nodes.append(node)
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)


def read_float_values(model: Any, quantized: frozenset[str]) -> None:
    """Let float nodes read, in place, the float value in front of a pair instead of the rounded one behind it.

    The quantizer puts a pair at a value for all of its readers, but only 8-bit readers need it. The result of an 8-bit
    node exists only in rounded form.
    """
    producer = {value: node for node in model.graph.node for value in node.output}
    inputs = {entry.name for entry in model.graph.input}
    pairs = {"QuantizeLinear", "DequantizeLinear"}
    for node in [node for node in model.graph.node if node.op_type not in pairs and node.name not in quantized]:
        for place, name in enumerate(node.input):
            last = producer.get(name)
            first = producer.get(last.input[0]) if last is not None and last.op_type == "DequantizeLinear" else None
            value = first.input[0] if first is not None else ""
            source = producer.get(value)
            if value in inputs or (source is not None and source.name not in quantized):
                node.input[place] = value


def drop_idle_pairs(model: Any, quantized: frozenset[str], *, makers: Mapping[str, str]) -> None:
    """Remove, in place, each pair behind a product that can give float, where only float nodes read the result.

    ``QGemm`` and the integer ``MatMul`` can have float results; rounding them for a float reader only costs accuracy.
    A pair that replaced an activation stays: its bounds do the work of the ReLU.

    Args:
        model: The quantized model.
        quantized: Names of the nodes that were quantized.
        makers: Value -> name of the node that made it before the quantizer removed activations.
    """
    producer = {value: node for node in model.graph.node for value in node.output}
    readers: dict[str, list[Any]] = {}
    for node in model.graph.node:
        for value in node.input:
            readers.setdefault(value, []).append(node)
    dropped: set[str] = set()
    for last in [node for node in model.graph.node if node.op_type == "DequantizeLinear"]:
        first = producer.get(last.input[0])
        source = producer.get(first.input[0]) if first is not None else None
        if first is None or source is None or source.op_type not in FLOAT_GIVING_TYPES:
            continue
        # A result of the model keeps its name behind the pair, every other value in front of it.
        maker = makers.get(first.input[0]) or makers.get(last.output[0])
        around = [*readers.get(last.output[0], ()), *readers.get(source.output[0], ())]
        if maker != source.name or len(readers[first.output[0]]) > 1 or any(one.name in quantized for one in around):
            continue
        source.output[0] = last.output[0]
        dropped |= {first.name, last.name}
    kept = [node for node in model.graph.node if node.name not in dropped]
    model.graph.ClearField("node")
    model.graph.node.extend(kept)
    drop_unused_constants(model)


def shield_float_products(model: Any, quantized: frozenset[str]) -> None:
    """Keep, in place, products that are planned in float between 8-bit neighbours in float.

    ONNX Runtime quantizes a product by itself if its input was just dequantized and its result is quantized. A ``Max``
    of one value in between prevents that.
    """
    import onnx

    dequantized = {node.output[0] for node in model.graph.node if node.op_type == "DequantizeLinear"}
    nodes = []
    for node in model.graph.node:
        if node.op_type in static.PRODUCT_TYPES and node.name not in quantized and node.input[0] in dequantized:
            shielded = f"{node.name}_float_input"
            nodes.append(onnx.helper.make_node("Max", [node.input[0]], [shielded], name=shielded))
            node.input[0] = shielded
        nodes.append(node)
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)


def _quantize_dynamic(model: Any, nodes: Sequence[str], *, is_per_channel: bool) -> Any:
    from onnxruntime.quantization import QuantizationMode, QuantType
    from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer

    products = as_matmuls(model, set(nodes))
    if not products:
        return model  # without names the quantizer would take every product
    _rename_type(model, "Gemm", _HIDDEN_GEMM)
    before = _names_in(model)
    with hushed():
        quantizer = ONNXQuantizer(
            model,
            is_per_channel,
            int8_weight_bits() < 8,
            QuantizationMode.IntegerOps,
            False,  # not static
            QuantType.QInt8,
            QuantType.QUInt8,
            None,
            products,
            [],
            ["MatMul"],
            {"MatMulConstBOnly": True, "WeightSymmetric": True},
        )
        quantizer.quantize_model()
    _rename_type(quantizer.model.model, _HIDDEN_GEMM, "Gemm")
    _mark_new_names(quantizer.model.model, before, mark="_dynamic" if is_per_channel else "_dynamic_tensor")
    return quantizer.model.model


def _rename_type(model: Any, old: str, new: str) -> None:
    for node in model.graph.node:
        if node.op_type == old:
            node.op_type = new


def _names_in(model: Any) -> set[str]:
    """Names of all nodes, values and constants."""
    names = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        names |= {node.name, *node.input, *node.output}
    return names


def _mark_new_names(model: Any, known: set[str], *, mark: str) -> None:
    """Add a suffix to every new name, in place, because the static quantizer would choose the same names."""
    known = known | {""} | {entry.name for entry in (*model.graph.input, *model.graph.output)}

    def marked(name: str) -> str:
        return name if name in known else name + mark

    for tensor in model.graph.initializer:
        tensor.name = marked(tensor.name)
    for info in model.graph.value_info:
        info.name = marked(info.name)
    for node in model.graph.node:
        node.name = marked(node.name)
        node.input[:] = [marked(name) for name in node.input]
        node.output[:] = [marked(name) for name in node.output]


def _pack_weights(model: Any, nodes: Sequence[str], *, bits: int, block: int) -> Any:
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    chosen = {*nodes, *as_matmuls(model, set(nodes))}
    excluded = [node.name for node in model.graph.node if node.name not in chosen]
    with hushed():
        config = DefaultWeightOnlyQuantConfig(
            block_size=block, is_symmetric=bits == 8, accuracy_level=INT8_ACCUMULATION, bits=bits
        )
        quantizer = MatMulNBitsQuantizer(model, nodes_to_exclude=excluded, algo_config=config)
        quantizer.process()
    return quantizer.model.model
