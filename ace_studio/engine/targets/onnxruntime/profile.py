"""Maps ONNX Runtime's optimized graph and profile, what it really executes, back to ops."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.onnx.program import OnnxProgram, graph_steps
from ace_studio.engine.targets.onnx.tables import KERNEL
from ace_studio.engine.targets.shared.kernels import Kernel, adopt_orphans, covered_steps, heavy_ops, owners_of
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Precision

PROFILED_CALLS = 5
_NODE_SUFFIX = "_kernel_time"
_INTEGER_KINDS = frozenset(
    {"QLinearConv", "QGemm", "QLinearMatMul", "ConvInteger", "MatMulInteger", "MatMulIntegerToFloat",
     "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "QLinearConvTranspose"}
)  # fmt: skip
_FLOAT_PRODUCTS = frozenset(
    {"Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul", "ConvTranspose", "NhwcFusedConv", "Attention",
     "MultiHeadAttention", "LSTM", "GRU"}
)  # fmt: skip
_TYPE_PRECISION = {"uint8": "int8-static", "int8": "int8-static", "float16": "fp16", "bfloat16": "bf16"}
_CONVERSIONS = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Cast", "ReorderInput", "ReorderOutput"}
)


@dataclass
class _Profiled:
    """What the profile says of one node."""

    provider: str = ""
    input_types: list[str] = field(default_factory=list)
    times_us: list[float] = field(default_factory=list)


def profile_kernels(
    model: Any,
    program: OnnxProgram,
    *,
    feed: Mapping[str, Any],
    options: Any,
    providers: Sequence[str],
    planned: Mapping[str, Precision],
    heavy: GraphTable,
    folder: Path,
) -> list[Kernel]:
    """Run the model under ONNX Runtime's profiler and give a kernel for each executed node.

    Args:
        model: The ``ModelProto`` that is run.
        program: The fp32 model it was made from.
        feed: One call's inputs.
        options: Session options like those of the real session; changed here.
        providers: Execution providers, the best first.
        planned: Op id -> planned precision, to tell static from dynamic integer kernels of one name.
        heavy: The captured graph, to know its weighted ops.
        folder: Where the profile and the optimized graph are written.
    """
    import onnx
    import onnxruntime

    optimized_path = folder / "onnxruntime-optimized.onnx"
    options.optimized_model_filepath = str(optimized_path)
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "onnxruntime-profile")
    with hushed():
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=list(providers))
    for _ in range(PROFILED_CALLS):
        session.run(None, feed)
    profile = _read_profile(Path(session.end_profiling()))
    optimized = onnx.load(str(optimized_path))
    optimized_path.unlink()
    for index, node in enumerate(optimized.graph.node):
        node.name = node.name or f"unnamed_{index}"

    ops = heavy_ops(heavy)
    inputs = [found.name for found in model.graph.input]
    lowered_owners = owners_of(covered_steps(graph_steps(model), program.steps(), inputs=inputs), program.owners, ops)
    owners = owners_of(covered_steps(graph_steps(optimized), graph_steps(model), inputs=inputs), lowered_owners, ops)
    adopt_orphans(graph_steps(optimized), owners)
    return [
        _kernel(node, owners[node.name], profile.get(node.name, _Profiled()), planned) for node in optimized.graph.node
    ]


def _read_profile(path: Path) -> dict[str, _Profiled]:
    events = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    found: dict[str, _Profiled] = defaultdict(_Profiled)
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith(_NODE_SUFFIX):
            continue
        one = found[event["name"].removesuffix(_NODE_SUFFIX)]
        arguments = event.get("args", {})
        one.provider = arguments.get("provider", "")
        one.input_types = [kind for typed in arguments.get("input_type_shape", []) for kind in typed]
        one.times_us.append(float(event["dur"]))
    return found


def _kernel(node: Any, op_ids: tuple[str, ...], profiled: _Profiled, planned: Mapping[str, Precision]) -> Kernel:
    times = sorted(profiled.times_us)
    is_product = node.op_type in _INTEGER_KINDS or node.op_type in _FLOAT_PRODUCTS or node.op_type == "MatMulNBits"
    return Kernel(
        name=node.name,
        kind=node.op_type,
        precision=_precision(node, profiled, planned.get(op_ids[0]) if op_ids else None),
        op_ids=op_ids,
        device="cuda" if profiled.provider.startswith("CUDA") else "cpu",
        latency_ms=times[len(times) // 2] / 1000 if times else None,
        is_arithmetic=is_product,
        is_conversion=node.op_type in _CONVERSIONS,
    )


def _precision(node: Any, profiled: _Profiled, planned: Precision | None) -> str:
    if node.op_type == "MatMulNBits":
        bits = next((attribute.i for attribute in node.attribute if attribute.name == "bits"), 4)
        return Precision.INT4_WEIGHT if bits == 4 else Precision.INT8_WEIGHT
    if node.op_type == KERNEL:
        return Precision.INT8_WEIGHT
    if node.op_type in _INTEGER_KINDS or node.op_type.startswith("QLinear"):  # QLinearConcat reads a scale first
        return Precision.INT8_DYNAMIC if planned is Precision.INT8_DYNAMIC else Precision.INT8_STATIC
    first = profiled.input_types[0] if profiled.input_types and node.op_type != "Shape" else ""  # it reads no values
    return _TYPE_PRECISION.get(first, Precision.FP32)
