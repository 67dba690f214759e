"""Maps OpenVINO's runtime model, what it really executes, back to ops by the names of the original layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ace_studio.engine.targets.onnx.program import OnnxProgram
from ace_studio.engine.targets.shared.kernels import Kernel, heavy_ops
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import RECURRENT_LAYERS, operator_name
from ace_studio.records.recipes.plan import Precision

_NOT_COMPUTED = frozenset({"Const", "Input", "Output", "Parameter", "Result"})
_PRODUCTS = frozenset(
    {"Convolution", "FullyConnected", "MatMul", "Deconvolution", "ScaledDotProductAttention", "RNNSeq", "RNNCell",
     "LSTMSequence", "LSTMCell", "MHA", "GroupConvolution"}
)  # fmt: skip
_SEQUENCES = frozenset({"RNNSeq", "LSTMSequence", "GRUSequence"})
_CONVERSIONS = frozenset({"Reorder", "FakeQuantize", "Convert", "Subgraph_Reorder"})
_TYPE_PRECISION = {
    "u8": Precision.INT8_STATIC,
    "i8": Precision.INT8_STATIC,
    "bf16": Precision.BF16,
    "f16": Precision.FP16,
    "f32": Precision.FP32,
}
_PACKED_WEIGHTS = {"i8": 8, "u8": 8, "i4": 4, "u4": 4, "nf4": 4}
_FLOATS = frozenset({"f32", "bf16", "f16"})
_NOT_EXECUTED = "not_executed"


def runtime_kernels(runtime_model: Any, program: OnnxProgram, *, table: GraphTable, is_dynamic: bool) -> list[Kernel]:
    """The layers of a runtime model as kernels.

    Args:
        runtime_model: ``CompiledModel.get_runtime_model()``, after calls with counters on if times are wanted.
        program: The ONNX model that the names come from.
        table: The captured graph, to know its weighted ops.
        is_dynamic: Whether activations are quantized on the fly in front of packed 8-bit weights.
    """
    owners = _owners_by_any_name(program)
    heavy = heavy_ops(table)
    discrete = frozenset(
        name for name, dtype in zip(table.op_id, table.dtype, strict=True) if dtype.startswith(("bool", "int", "uint"))
    )
    kernels = [
        _kernel(node, owners, heavy, discrete=discrete, is_dynamic=is_dynamic)
        for node in runtime_model.get_ordered_ops()
        if _text(node, "layerType") not in _NOT_COMPUTED
    ]
    return [owned for kernel in kernels for owned in _with_recurrent_owner(kernel, table)]


def _with_recurrent_owner(kernel: Kernel, table: GraphTable) -> list[Kernel]:
    """Give a recurrent sequence, which OpenVINO names itself, to the recurrent ops; all of them run alike."""
    if kernel.op_ids or kernel.kind not in _SEQUENCES:
        return [kernel]
    ops = [table.op_id[row] for row in table.op_rows() if operator_name(table.op[row]) in RECURRENT_LAYERS]
    latency_ms = kernel.latency_ms if len(ops) == 1 else None
    return [replace(kernel, op_ids=(op_id,), latency_ms=latency_ms) for op_id in ops] or [kernel]


def _owners_by_any_name(program: OnnxProgram) -> dict[str, tuple[str, ...]]:
    """Owners by the names of the node and of its results: a layer that makes a model output has its name."""
    owners: dict[str, tuple[str, ...]] = {}
    for node in program.model.graph.node:
        for name in (node.name, *node.output):
            owners.setdefault(name, tuple(program.owners.get(node.name, ())))
    return owners


def _kernel(
    node: Any,
    owners: Mapping[str, tuple[str, ...]],
    heavy: frozenset[str],
    *,
    discrete: frozenset[str],
    is_dynamic: bool,
) -> Kernel:
    names = [part.strip() for part in _text(node, "originalLayersNames").split(",") if part.strip()]
    found = [op_id for name in names for op_id in owners.get(_plain_name(name), ())]
    layer = _text(node, "layerType")
    time_us = _text(node, "execTimeMcs")
    return Kernel(
        name=node.get_friendly_name(),
        kind=layer,
        precision=_precision(
            node, layer, is_discrete=bool(found) and discrete.issuperset(found), is_dynamic=is_dynamic
        ),
        op_ids=tuple(sorted(dict.fromkeys(found), key=lambda op_id: op_id not in heavy)),
        latency_ms=None if time_us in {"", _NOT_EXECUTED} else int(time_us) / 1000,
        is_arithmetic=layer in _PRODUCTS,
        is_conversion=layer in _CONVERSIONS,
    )


def _plain_name(name: str) -> str:
    """The ONNX name in a layer's name: OpenVINO adds suffixes behind a slash for biases and quantizers."""
    return name.partition("/")[0].removesuffix("_original")


def _precision(node: Any, layer: str, *, is_discrete: bool, is_dynamic: bool) -> str:
    """The precision that a layer computes in. 8-bit truth values and indices are no quantized numbers."""
    runtime, primitive = _text(node, "runtimePrecision"), _text(node, "primitiveType")
    if layer == "Gather" and _text(node, "outputPrecisions") in _FLOATS and _packed_weight_bits(node, place=0):
        return Precision.INT8_WEIGHT
    bits = _packed_weight_bits(node) if layer in _PRODUCTS and primitive.endswith(("f32", "bf16", "f16")) else 0
    if bits == 4:
        return Precision.INT4_WEIGHT
    if bits == 8:
        return Precision.INT8_DYNAMIC if is_dynamic else Precision.INT8_WEIGHT
    found = _TYPE_PRECISION.get(runtime, Precision.FP32)
    return Precision.FP32 if found is Precision.INT8_STATIC and is_discrete else found


def _packed_weight_bits(node: Any, *, place: int = 1) -> int:
    """Bits of a packed weight that a float kernel unpacks; 0 if the weight is float."""
    if len(node.inputs()) < 2:
        return 0
    source = node.input(place).get_source_output().get_node()
    return _PACKED_WEIGHTS.get(_text(source, "outputPrecisions"), 0)


def _text(node: Any, key: str) -> str:
    info = node.get_rt_info()
    if key not in info:
        return ""
    value = info[key]
    return str(value.astype(str)) if hasattr(value, "astype") else str(value)
