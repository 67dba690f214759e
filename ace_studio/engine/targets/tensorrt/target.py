"""TensorRT: the captured graph as ONNX with signed pairs, built into an engine for the local GPU.

Written against the documentation of TensorRT 10. Building and running engines has never been tried, for lack of a GPU.
What needs none (the ONNX model, the sizes, reading an engine's layers) is tested.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec
import torch
from torch import Tensor

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual
from ace_studio.engine.targets.onnx.masks import guarded
from ace_studio.engine.targets.onnx.op_support import pairs_op_problem
from ace_studio.engine.targets.onnx.program import OnnxProgram, onnx_program_of
from ace_studio.engine.targets.onnx.quantize import quantize_program
from ace_studio.engine.targets.onnx.support import onnx_verdict
from ace_studio.engine.targets.onnxruntime.target import make_session
from ace_studio.engine.targets.shared.cuda import CudaTarget
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.engine.targets.shared.kernels import Kernel, actuals_of, heavy_ops
from ace_studio.engine.targets.shared.library_error import library_error
from ace_studio.engine.targets.shared.size_bounds import Sizes, size_bounds
from ace_studio.engine.targets.shared.support import judge_ops
from ace_studio.engine.targets.tensorrt.onnx import signed_model
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import ActivationGrid, Precision
from ace_studio.records.results import OpSupport

_ARTIFACT = "model.engine"
_WORKSPACE_BYTES = 4 << 30
_HALF_FLAGS = {Precision.FP16: "FP16", Precision.BF16: "BF16"}


class TensorRtTarget(CudaTarget):
    """Engines for NVIDIA GPUs."""

    precisions: ClassVar[Mapping[Precision, str]] = {
        **dict.fromkeys((Precision.FP32, Precision.FP16, Precision.BF16, Precision.INT8_STATIC), ""),
        Precision.INT8_DYNAMIC: "TensorRT has no grids that are found at every call: use int8-static",
        Precision.INT8_WEIGHT: "TensorRT keeps 8-bit weights only where the activations are 8-bit too: use int8-static",
        Precision.INT4_WEIGHT: "nothing is written for TensorRT's 4-bit weights yet; torchao-cuda has int4-weight",
        Precision.FP8: "the ONNX model carries no fp8 pairs yet; torchao-cuda has fp8",
    }

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays fp32: 8-bit pairs stand where ONNX Runtime would have them."""
        return pairs_op_problem(op) if precision is Precision.INT8_STATIC else ""

    def support(self, captured: CapturedModel) -> list[OpSupport]:
        """What the ONNX exporter can write; TensorRT's parser has the last word."""
        return judge_ops(captured, onnx_verdict)

    def build(self, job: LoweringJob) -> Lowered:
        """Export, quantize, make signed, build, open."""
        program = job.once("onnx_program_guarded", lambda: guarded(onnx_program_of(job), job.captured))
        model, notes = quantized_onnx(program, job)
        job.reporter.phase(Phase.LOWER, "TensorRT is timing kernels; this takes minutes")
        engine = build_engine(model.SerializeToString(), program, job)
        return TensorRtLowered(job, program, engine, notes=notes)

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.engine`` on the GPU that it was built for."""
        del threads
        self.require()
        return _opened(path.read_bytes(), name=path.name, device=torch.device("cuda"))[0]


def quantized_onnx(program: OnnxProgram, job: LoweringJob) -> tuple[Any, Mapping[str, str]]:
    """The program's model with the pairs of the plan, signed; and op id -> why one of them is not 8-bit."""
    if Precision.INT8_STATIC not in job.plan.precisions:
        return program.model, {}
    around_zero = dataclasses.replace(job, plan=symmetric_plan(job.plan))
    model, notes = quantize_program(
        program, around_zero, lambda one: make_session(one.SerializeToString(), threads=job.threads)
    )
    return signed_model(model), notes


def symmetric_plan(plan: BoundPlan) -> BoundPlan:
    """The plan with symmetric activations: the quantizer then keeps ReLUs, which an affine grid from 0 on replaces."""
    change = partial(msgspec.structs.replace, activations=ActivationGrid.SYMMETRIC)
    ops = {op_id: dataclasses.replace(op, scheme=change(op.scheme)) for op_id, op in plan.ops.items()}
    return BoundPlan(change(plan.plan), ops)


def profile_sizes(
    captured: CapturedModel, chosen: Sizes = MappingProxyType({})
) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Smallest, usual and largest shape of every tensor input: the range that the engine is built for."""
    examples = [example.tensors() for example in captured.examples]
    found = []
    pairs = zip(captured.example.tensors(), size_bounds(captured, chosen), strict=True)
    for place, (traced, bounds) in enumerate(pairs):
        seen = list(zip(*(leaves[place].shape for leaves in examples), strict=True))
        most = tuple(bounds.get(dim, max(sizes)) for dim, sizes in enumerate(seen))
        least, usual = list(map(min, seen)), list(traced.shape)
        for dim in bounds:
            if own := chosen.get(f"{captured.inputs[place].name}.{dim}"):
                least[dim], usual[dim] = min(least[dim], own[0]), own[1]
        found.append((tuple(least), tuple(usual), most))
    return found


def build_engine(model: bytes, program: OnnxProgram, job: LoweringJob) -> bytes:
    """Build the engine. Raises: AceError(UNSUPPORTED) in TensorRT's own words if it refuses the model."""
    import tensorrt as trt

    builder = trt.Builder(_logger())
    halves = [_HALF_FLAGS[one] for one in job.plan.precisions if one in _HALF_FLAGS]
    # Typed strongly, a network computes what its pairs say; half precision is a permission, which strong types exclude.
    flags = 0 if halves else 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(flags)
    parser = trt.OnnxParser(network, _logger())
    if not parser.parse(model):
        raise _unsupported(
            "TensorRT cannot read the ONNX model", [parser.get_error(i).desc() for i in range(parser.num_errors)]
        )
    network.name = json.dumps(list(program.input_names))  # kept in the engine: the order in which tensors are given
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, _WORKSPACE_BYTES)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    for name in [*halves, *(["INT8"] if halves and Precision.INT8_STATIC in job.plan.precisions else [])]:
        if not hasattr(trt.BuilderFlag, name):
            raise _unsupported(f"TensorRT {trt.__version__} no longer chooses {name} by itself", [])
        config.set_flag(getattr(trt.BuilderFlag, name))
    _add_profile(
        builder, network, config, dict(zip(program.input_names, profile_sizes(job.captured, job.sizes), strict=True))
    )
    built = builder.build_serialized_network(network, config)
    if built is None:
        raise _unsupported("TensorRT could not build an engine", [])
    return bytes(built)


def _add_profile(builder: Any, network: Any, config: Any, sizes: Mapping[str, tuple[tuple[int, ...], ...]]) -> None:
    profile = builder.create_optimization_profile()
    for index in range(network.num_inputs):
        name = network.get_input(index).name
        profile.set_shape(name, *sizes[name])
    config.add_optimization_profile(profile)


def _logger() -> Any:
    import tensorrt as trt

    return trt.Logger(trt.Logger.ERROR)


def _unsupported(what: str, words: Sequence[str]) -> AceError:
    return AceError.of(
        ErrorCode.UNSUPPORTED,
        what,
        why="; ".join(words)[:300] or "it says no more than that",
        remedy="Keep the op that it names at fp32, or use another target.",
        details="\n".join(words)[:20_000],
    )


class TensorRtLowered(Lowered):
    """An opened engine, and what it was built from."""

    def __init__(self, job: LoweringJob, program: OnnxProgram, engine: bytes, *, notes: Mapping[str, str]) -> None:
        self._job = job
        self._program = program
        self._engine = engine
        self._notes = notes
        run, self._information = _opened(engine, name=_ARTIFACT, device=job.device)
        self._call = FlatCall(job.captured).around(run)

    def read_back(self) -> list[OpActual]:
        """What the engine says of its own layers."""
        job = self._job
        heavy = heavy_ops(job.captured.table)
        kernels = engine_kernels(self._information, self._program.owners, heavy, device=str(job.device))
        return actuals_of(job, kernels, runtime="TensorRT", folded=self._program.folded, notes=self._notes)

    def save(self, folder: Path) -> Path:
        """Write ``model.engine``."""
        path = folder / _ARTIFACT
        path.write_bytes(self._engine)
        return path


_ONNX_NODE = re.compile(r"\[ONNX Layer: ([^\]]+)\]")
_TYPE_WORDS = (
    ("int8", str(Precision.INT8_STATIC)),
    ("fp8", str(Precision.FP8)),
    ("bf16", str(Precision.BF16)),
    ("bfloat16", str(Precision.BF16)),
    ("half", str(Precision.FP16)),
    ("fp16", str(Precision.FP16)),
    ("float", str(Precision.FP32)),
    ("fp32", str(Precision.FP32)),
)
"""Part of the description of a format, such as ``Int8 NC/32HW32`` or ``Row major linear FP16 format`` -> precision."""


def engine_kernels(
    information: str, owners: Mapping[str, tuple[str, ...]], heavy: frozenset[str], *, device: str
) -> list[Kernel]:
    """The layers of an engine, from the JSON of its inspector, with the ops whose ONNX nodes each one does."""
    found = []
    for layer in json.loads(information).get("Layers", []):
        if not isinstance(layer, dict):  # only names: the engine was built without details
            continue
        nodes = _ONNX_NODE.findall(str(layer.get("Metadata", "")))
        ids = list(dict.fromkeys(op_id for node in nodes for op_id in owners.get(node, ())))
        ids.sort(key=lambda op_id: op_id not in heavy)
        if ids:
            kind = str(layer.get("LayerType", "layer"))
            found.append(
                Kernel(
                    name=str(layer.get("Name", "")),
                    kind=kind,
                    precision=_layer_precision(layer),
                    op_ids=tuple(ids),
                    device=device,
                    is_arithmetic=ids[0] in heavy and "reformat" not in kind.lower(),
                    is_conversion="reformat" in kind.lower(),
                )
            )
    return found


def _layer_precision(layer: Mapping[str, Any]) -> str:
    """The type that a layer reads; int8 wins, because a quantized layer may give a float result."""
    formats = " ".join(
        str(one.get("Format/Datatype", "")) for one in [*layer.get("Inputs", []), *layer.get("Outputs", [])]
    )
    return next((word for text, word in _TYPE_WORDS if text in formats.lower()), "unknown")


def _opened(engine_bytes: bytes, *, name: str, device: torch.device) -> tuple[Callable[..., list[Tensor]], str]:
    """The engine behind a function over flat tensors, and what its inspector says of its layers.

    Raises: AceError(BAD_FILE) if this GPU, or this release of TensorRT, cannot open it.
    """
    import tensorrt as trt

    try:
        engine = trt.Runtime(_logger()).deserialize_cuda_engine(engine_bytes)
    except (RuntimeError, TypeError) as error:
        raise library_error(ErrorCode.BAD_FILE, f"TensorRT cannot read {name}", error) from error
    if engine is None:
        why = "engines fit only the kind of GPU and the release of TensorRT that built them"
        raise AceError.of(ErrorCode.BAD_FILE, f"TensorRT cannot open {name} here", why=why, where=name)
    context = engine.create_execution_context()
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    reads = {one for one in names if engine.get_tensor_mode(one) == trt.TensorIOMode.INPUT}
    results = [one for one in names if one not in reads]
    order = json.loads(engine.name) if engine.name.startswith("[") else [one for one in names if one in reads]

    def run(*tensors: Tensor) -> list[Tensor]:
        held = {one: tensor.to(device).contiguous() for one, tensor in zip(order, tensors, strict=True) if one in reads}
        for one, tensor in held.items():
            if not context.set_input_shape(one, tuple(tensor.shape)):
                raise _bad_size(one, tensor)
            context.set_tensor_address(one, tensor.data_ptr())
        made = [
            torch.empty(tuple(context.get_tensor_shape(one)), dtype=_dtype(engine, one), device=device)
            for one in results
        ]
        for one, tensor in zip(results, made, strict=True):
            context.set_tensor_address(one, tensor.data_ptr())
        if not context.execute_async_v3(torch.cuda.current_stream(device).cuda_stream):
            raise AceError.of(ErrorCode.UNSUPPORTED, "TensorRT could not run the engine on these inputs")
        return made

    inspector = engine.create_engine_inspector()
    return run, inspector.get_engine_information(trt.LayerInformationFormat.JSON)


def _bad_size(name: str, tensor: Tensor) -> AceError:
    return AceError.of(
        ErrorCode.BAD_INPUT,
        "The engine was built for other sizes than this input has",
        why=f"{name} is {tuple(tensor.shape)}",
        remedy="Give an example of this size when tracing.",
    )


def _dtype(engine: Any, name: str) -> torch.dtype:
    """The element type of an engine's tensor, as torch calls it."""
    import tensorrt as trt

    words = {
        "FLOAT": torch.float32, "HALF": torch.float16, "BF16": torch.bfloat16, "INT8": torch.int8,
        "INT32": torch.int32, "INT64": torch.int64, "BOOL": torch.bool, "UINT8": torch.uint8,
    }  # fmt: skip
    kinds = {getattr(trt.DataType, word): dtype for word, dtype in words.items() if hasattr(trt.DataType, word)}
    return kinds[engine.get_tensor_dtype(name)]
