"""OpenVINO: reads the captured graph as ONNX, compresses it with NNCF as planned, and reports what really runs."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.flow import BoundPlan, CapturedModel, Example
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import PAIRS, Int8Style
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.onnx.op_support import openvino_op_problem
from ace_studio.engine.targets.onnx.program import OnnxProgram
from ace_studio.engine.targets.onnx.support import openvino_verdict
from ace_studio.engine.targets.openvino.activations import NOT_QUANTIZED, quantizes_activations
from ace_studio.engine.targets.openvino.attention import program_for_openvino, read_onnx
from ace_studio.engine.targets.openvino.compress import compress_model
from ace_studio.engine.targets.openvino.library import import_openvino
from ace_studio.engine.targets.openvino.stored import notes_of_kernels
from ace_studio.engine.targets.shared.flat_call import FlatCall, as_numpy, as_tensor
from ace_studio.engine.targets.shared.kernels import Kernel, actuals_of, heavy_ops
from ace_studio.engine.targets.shared.library_error import library_error
from ace_studio.engine.targets.shared.support import judge_ops
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import RECURRENT_LAYERS, operator_name
from ace_studio.records.recipes.plan import ActivationGrid, Plan, Precision, WeightGranularity
from ace_studio.records.recipes.recipe import Observer
from ace_studio.records.results import OpSupport
from ace_studio.records.tensors import size_limits

_ARTIFACT = "model.xml"
ACTIVATION_GROUP = "32"
"""Group size of dynamically quantized activations; 0 turns dynamic quantization off."""
GROUP_OPTION = "activation_group"
LARGER_GROUPS = ("64", "128")
_ON_THE_FLY = frozenset({Precision.INT8_DYNAMIC, Precision.INT4_WEIGHT})
_FLOAT_TYPE = "INFERENCE_PRECISION_HINT"
_STORED_OPTIONS = (_FLOAT_TYPE, "DYNAMIC_QUANTIZATION_GROUP_SIZE")
"""Options that change results; they are stored in the artifact."""
_COMPUTED_AS_WEIGHTS = (
    f"int8-dynamic computes as int8-weight here: {NOT_QUANTIZED}. "
    "Where there are such instructions the same artifact is faster and less exact"
)
_OUR_SECTION = "ace_studio"
_RUNTIME_SECTION = "runtime_options"
"""Where OpenVINO itself reads options; it applies the group size there, but not the precision."""
_PROFILED_CALLS = 3
"""Besides the first."""


class OpenVinoTarget(Target):
    """Runs on the CPU."""

    def precision_problem(self, precision: Precision) -> str:
        """Why not, where this processor lacks the arithmetic."""
        needed = _CAPABILITY.get(precision)
        if needed is None:
            return f"OpenVINO has no {precision} on a CPU"
        capability, instructions = needed
        if capability in cpu_capabilities():
            return ""
        return f"this processor computes no {precision}: OpenVINO needs {instructions} for it"

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays fp32."""
        return openvino_op_problem(op, precision)

    def int8_style(self, plan: Plan, ranges: RangeChoice) -> Int8Style:
        """That of NNCF's models; pairs where NNCF cannot make the grids that the plan asks for."""
        usual = (WeightGranularity.PER_CHANNEL, ActivationGrid.AFFINE)
        schemes = (plan.scheme, *(rule.scheme(plan) for rule in plan.rules))
        is_usual = all((scheme.weights, scheme.activations) == usual for scheme in schemes)
        return super().int8_style(plan, ranges) if is_usual and ranges.observer is Observer.MIN_MAX else PAIRS

    def options(self, plan: BoundPlan, table: GraphTable) -> Sequence[Mapping[str, str]]:
        """Larger groups of activations with one scale: up to 1.2 times faster, less than 1 dB less exact."""
        del table
        is_rounded = plan.precisions & _ON_THE_FLY and quantizes_activations()
        return [{GROUP_OPTION: size} for size in LARGER_GROUPS] if is_rounded else []

    def support(self, captured: CapturedModel) -> list[OpSupport]:
        """What the ONNX exporter can write and OpenVINO can read."""
        self.require()
        return judge_ops(captured, openvino_verdict)

    def build(self, job: LoweringJob) -> Lowered:
        """Read the shared ONNX model, compress it, compile it."""
        program = program_for_openvino(job)
        model = read_onnx(program.model)
        model, notes = compress_model(
            model, program, job, lambda onnx_model: OpenVinoSession(onnx_model, threads=job.threads)
        )
        for limit in size_limits(job.captured.inputs):  # OpenVINO refuses sizes beyond the bounds of a shape
            shape = model.input(limit.leaf).get_partial_shape()
            shape[limit.dim] = import_openvino().Dimension(limit.low, -1 if limit.high is None else limit.high)
            model.reshape({limit.leaf: shape})
        if (on_the_fly := job.plan.ops_at(Precision.INT8_DYNAMIC)) and not quantizes_activations():
            notes = {**dict.fromkeys(on_the_fly, NOT_QUANTIZED), **notes}
            job.reporter.warn("float-activations", _COMPUTED_AS_WEIGHTS, where="openvino")
        options = _planned_options(job)
        for key in _STORED_OPTIONS:
            model.set_rt_info(options[key], [_OUR_SECTION, key])
            model.set_rt_info(options[key], [_RUNTIME_SECTION, key])
        job.reporter.advance(None, "compiling for OpenVINO")
        return OpenVinoLowered(job, program, model, options=options, notes=notes)

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.xml`` with the weights beside it."""
        self.require()
        return _flat_function(_compile(*self._stored(path, threads=threads)))

    def needed_options(self, path: Path, tensors: Sequence[Tensor], expected: Sequence[Tensor]) -> dict[str, str]:
        """The float type that it was measured with, if OpenVINO takes another one here and that changes the results."""
        model, options = self._stored(path, threads=1)
        wanted = options.pop(_FLOAT_TYPE)
        usual = import_openvino().Core().get_property("CPU", _FLOAT_TYPE).to_string()
        if {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}.get(usual, usual) == wanted:
            return {}
        given = _flat_function(_compile(model, options))(*tensors)
        return {} if all(map(torch.equal, given, expected)) else {_FLOAT_TYPE: wanted}

    @staticmethod
    def _stored(path: Path, *, threads: int) -> tuple[Any, dict[str, str]]:
        """The model of a file, and the options that it was compiled with."""
        try:
            model = import_openvino().Core().read_model(str(path))
        except RuntimeError as error:
            raise AceError.of(
                ErrorCode.BAD_FILE, f"OpenVINO cannot read {path.name}", why=str(error)[:500], where=str(path)
            ) from error
        stored = {
            key: str(model.get_rt_info([_OUR_SECTION, key]).astype(str))
            for key in _STORED_OPTIONS
            if model.has_rt_info([_OUR_SECTION, key])
        }
        return model, {**base_options(threads=threads), **stored}


_CAPABILITY: Mapping[Precision, tuple[str, str]] = {
    Precision.FP32: ("FP32", "nothing special"),
    Precision.BF16: ("BF16", "avx512_bf16 or amx_bf16"),
    Precision.FP16: ("FP16", "avx512_fp16 or amx_fp16"),
    Precision.INT8_STATIC: ("INT8", "AVX2 or better"),
    Precision.INT8_DYNAMIC: ("INT8", "AVX2 or better"),
    Precision.INT8_WEIGHT: ("INT8", "AVX2 or better"),
    Precision.INT4_WEIGHT: ("INT8", "AVX2 or better"),
}
"""Precision -> capability of OpenVINO's CPU device, and the instructions that it needs."""


class OpenVinoLowered(Lowered):
    """A compiled model, and the model it was compiled from."""

    runs_in_torch = False

    def __init__(
        self, job: LoweringJob, program: OnnxProgram, model: Any, *, options: dict[str, str], notes: Mapping[str, str]
    ) -> None:
        self._job = job
        self._program = program
        self._model = model
        self._options = options
        self._notes = notes
        self._compiled = _compile(model, options)
        self._call = FlatCall(job.captured).around(_flat_function(self._compiled))

    def bare(self, example: Example) -> Callable[[], object]:
        """``infer`` of a request on arrays that are read where they lie."""
        request = self._compiled.create_infer_request()
        inputs = {index: as_numpy(tensor) for index, tensor in enumerate(example.tensors())}
        return lambda: request.infer(inputs, share_inputs=True, share_outputs=False)

    def read_back(self) -> list[OpActual]:
        """Compile once more with counters, run the traced example, read the runtime's own model."""
        job = self._job
        compiled = _compile(self._model, {**self._options, "PERF_COUNT": "YES"})
        run, inputs = _flat_function(compiled), job.captured.example.tensors()
        run(*inputs)
        first_us = _mean_us(compiled.get_runtime_model())
        for _ in range(_PROFILED_CALLS):
            run(*inputs)
        kernels = runtime_kernels(
            compiled.get_runtime_model(),
            self._program,
            first_us,
            table=job.captured.table,
            is_dynamic=self._options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] != "0" and quantizes_activations(),
        )
        owners = _owners_by_any_name(self._program)
        notes = notes_of_kernels(self._notes, job, kernels, self._model, owners)
        return actuals_of(job, kernels, runtime="OpenVINO", folded=self._program.folded, notes=notes)

    def save(self, folder: Path) -> Path:
        """Write ``model.xml`` and ``model.bin`` as they are: nothing is rounded to half precision on the way."""
        path = folder / _ARTIFACT
        import_openvino().save_model(self._model, str(path), compress_to_fp16=False)
        return path


@cache
def cpu_capabilities() -> frozenset[str]:
    """Capabilities that OpenVINO's CPU device reports; empty if OpenVINO is missing."""
    if importlib.util.find_spec("openvino") is None:
        return frozenset()
    return frozenset(import_openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"))


def base_options(*, threads: int) -> dict[str, str]:
    """Options of every compilation: one stream of that many threads, fp32 unless said otherwise, no cache on disk.

    Without the precision hint OpenVINO computes in bfloat16 wherever the processor can. Threads are not pinned,
    because those of the other targets are not either.
    """
    return {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": "1",
        "INFERENCE_NUM_THREADS": str(threads),
        "ENABLE_CPU_PINNING": "NO",
        _FLOAT_TYPE: "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
        "CACHE_DIR": "",
    }


def _planned_options(job: LoweringJob) -> dict[str, str]:
    options = base_options(threads=job.threads)
    hints = {Precision.BF16: "bf16", Precision.FP16: "f16"}
    for precision in job.plan.precisions & set(hints):
        options[_FLOAT_TYPE] = hints[precision]
    if job.plan.precisions & _ON_THE_FLY:
        options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = job.options.get(GROUP_OPTION, ACTIVATION_GROUP)
    return options


def _compile(model: Any, options: dict[str, str]) -> Any:
    try:
        return import_openvino().Core().compile_model(model, "CPU", options)
    except RuntimeError as error:
        raise library_error(
            ErrorCode.UNSUPPORTED,
            "OpenVINO cannot compile the model",
            error,
            remedy="Choose another target, or keep the op that it names at fp32.",
        ) from error


def _flat_function(compiled: Any) -> Callable[..., list[Tensor]]:
    request = compiled.create_infer_request()
    outputs = list(compiled.outputs)

    def run(*tensors: Tensor) -> list[Tensor]:
        inputs = {index: as_numpy(tensor) for index, tensor in enumerate(tensors)}
        # Inputs are read where they lie; outputs are copied, because the request writes the same memory next time.
        try:
            results = request.infer(inputs, share_inputs=True, share_outputs=False)
        except RuntimeError as error:
            raise library_error(
                ErrorCode.UNSUPPORTED,
                "OpenVINO cannot run the model on these inputs",
                error,
                remedy="Choose another target for this model, or give the inputs a size that was traced.",
            ) from error
        return [as_tensor(results[output]) for output in outputs]

    return run


class OpenVinoSession:
    """Runs an ONNX model in OpenVINO with the part of an ONNX Runtime session's interface that calibration needs."""

    def __init__(self, model: Any, *, threads: int) -> None:
        self._compiled = _compile(read_onnx(model), base_options(threads=threads))

    def run(self, names: list[str], feed: dict[str, Any]) -> list[Any]:
        """The named outputs for one call."""
        results = self._compiled(feed)
        return [results[name] for name in names]


_NOT_COMPUTED = frozenset({"Const", "Input", "Output", "Parameter", "Result"})
_PRODUCTS = frozenset(
    {"Convolution", "FullyConnected", "MatMul", "Deconvolution", "ScaledDotProductAttention", "RNNSeq", "RNNCell",
     "LSTMSequence", "LSTMCell", "MHA", "GroupConvolution"}
)  # fmt: skip
_SEQUENCES = frozenset({"RNNSeq", "LSTMSequence", "GRUSequence"})
_ELEMENTWISE = frozenset({"Eltwise", "Subgraph"})
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


def _mean_us(runtime_model: Any) -> dict[str, int]:
    """Name of a layer -> its mean time of all calls so far, in microseconds; layers that did not run are left out."""
    times = {node.get_friendly_name(): _text(node, "execTimeMcs") for node in runtime_model.get_ordered_ops()}
    return {name: int(text) for name, text in times.items() if text not in {"", _NOT_EXECUTED}}


def later_times_ms(mean_us: Mapping[str, int], first_us: Mapping[str, int], *, calls: int) -> dict[str, float]:
    """Name of a layer -> its mean time of the calls after the first, from the means of all and of the first."""
    return {
        name: max(0, (calls + 1) * mean - first_us.get(name, mean)) / calls / 1000 for name, mean in mean_us.items()
    }


def runtime_kernels(
    runtime_model: Any, program: OnnxProgram, first_us: Mapping[str, int], *, table: GraphTable, is_dynamic: bool
) -> list[Kernel]:
    """The layers of a runtime model as kernels.

    The first call is left out of their times: in it the runtime also makes its kernels.

    Args:
        runtime_model: ``CompiledModel.get_runtime_model()``, after `_PROFILED_CALLS` more calls.
        program: The ONNX model that the names come from.
        first_us: What `_mean_us` gives after the first call.
        table: The captured graph, to know its weighted ops.
        is_dynamic: Whether activations are quantized on the fly in front of packed 8-bit weights.
    """
    owners = _owners_by_any_name(program)
    heavy = heavy_ops(table)
    times_ms = later_times_ms(_mean_us(runtime_model), first_us, calls=_PROFILED_CALLS)
    kernels = [
        _kernel(node, owners, heavy, times_ms, is_dynamic=is_dynamic)
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
    times_ms: Mapping[str, float],
    *,
    is_dynamic: bool,
) -> Kernel:
    names = [part.strip() for part in _text(node, "originalLayersNames").split(",") if part.strip()]
    found = [op_id for name in names for op_id in owners.get(_plain_name(name), ())]
    layer = _text(node, "layerType")
    return Kernel(
        name=node.get_friendly_name(),
        kind=layer,
        precision=_precision(node, layer, is_dynamic=is_dynamic),
        op_ids=tuple(sorted(dict.fromkeys(found), key=lambda op_id: op_id not in heavy)),
        latency_ms=times_ms.get(node.get_friendly_name()),
        is_arithmetic=layer in _PRODUCTS,
        is_conversion=layer in _CONVERSIONS,
    )


def _plain_name(name: str) -> str:
    """The ONNX name in a layer's name: OpenVINO adds suffixes behind a slash for biases and quantizers."""
    return name.partition("/")[0].removesuffix("_original")


def _precision(node: Any, layer: str, *, is_dynamic: bool) -> str:
    """The precision that a layer computes in."""
    runtime, primitive = _text(node, "runtimePrecision"), _text(node, "primitiveType")
    if layer in _ELEMENTWISE:  # OpenVINO tells the type of the first input, which may be a mask over floats
        read = [_text(one.get_source_output().get_node(), "outputPrecisions") for one in node.inputs()]
        runtime = next((one for one in read if one in _FLOATS), runtime)
    if layer == "Gather" and _text(node, "outputPrecisions") in _FLOATS and _packed_weight_bits(node, place=0):
        return Precision.INT8_WEIGHT
    bits = _packed_weight_bits(node) if layer in _PRODUCTS and primitive.endswith(("f32", "bf16", "f16")) else 0
    if bits == 4:
        return Precision.INT4_WEIGHT
    if bits == 8:
        return Precision.INT8_DYNAMIC if is_dynamic else Precision.INT8_WEIGHT
    return _TYPE_PRECISION.get(runtime, Precision.FP32)


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
