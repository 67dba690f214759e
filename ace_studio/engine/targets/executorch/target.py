"""ExecuTorch: a program for phones and small devices that delegates to XNNPACK.

It is built and run through ExecuTorch's Python runtime, on the XNNPACK kernels that a device uses. Memory is planned
at build time, so every dynamic size has an upper bound, which is stored in the artifact.
"""

import dataclasses
import importlib.metadata
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.quantize.apply import RewrittenGraph
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.executorch.quantize import executorch_op_problem, quantize_for_xnnpack
from ace_studio.engine.targets.shared.carried_ids import carried_id, carry_ids
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.engine.targets.shared.kernels import FLOAT_WORDS, Kernel, actuals_of, heavy_ops
from ace_studio.engine.targets.shared.library_error import library_error
from ace_studio.engine.targets.shared.size_bounds import export_bounded, size_bounds
from ace_studio.engine.targets.shared.support import judge_torch_ops
from ace_studio.engine.torch_private.operators import result_dtype
from ace_studio.records.errors import ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import OpSupport

_ARTIFACT = "model.pte"
_DELEGATE = "XNNPACK"
_ACTIVATIONS = ("aten.relu", "aten.hardtanh", "aten.clamp")
_INT8 = frozenset({Precision.INT8_STATIC, Precision.INT8_DYNAMIC})


class ExecuTorchTarget(Target):
    """XNNPACK where it can, ExecuTorch's portable kernels for the rest."""

    modules = ("executorch.exir", "executorch.backends.xnnpack.partition.xnnpack_partitioner", "executorch.runtime")
    precisions: ClassVar[Mapping[Precision, str]] = {
        **dict.fromkeys((Precision.FP32, Precision.INT8_STATIC, Precision.INT8_DYNAMIC), ""),
        Precision.FP16: "XNNPACK takes fp16 for whole models on ARM processors; this target hands it fp32 and int8",
        Precision.BF16: "XNNPACK has no bf16 kernels that ExecuTorch delegates to",
        Precision.INT8_WEIGHT: "XNNPACK multiplies 8-bit weights with 8-bit activations only: use int8-dynamic",
        Precision.INT4_WEIGHT: "XNNPACK multiplies 4-bit weights with 8-bit activations only, which no plan asks for",
        Precision.FP8: "XNNPACK has no fp8 kernels",
    }

    def opening_problem(self) -> str:
        """Whether it was built for a later torch, or does not open beside this one."""
        wanted = [one for one in importlib.metadata.requires("executorch") or () if re.match(r"torch\W", one)]
        oldest = re.search(r">=\s*([\d.]+)", wanted[0]) if wanted else None
        if oldest and _numbers(str(torch.__version__)) < _numbers(oldest[1]):
            version = importlib.metadata.version("executorch")
            return f"executorch {version} needs torch {oldest[1]} or later, this is {torch.__version__}"
        return super().opening_problem()

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays fp32."""
        return executorch_op_problem(op, precision) if precision in _INT8 else ""

    def support(self, captured: CapturedModel) -> list[OpSupport]:
        """Operators of torch are portable; those of a user's own or of a library have no kernel in the runtime."""
        return judge_torch_ops(captured, "ExecuTorch's runtime has no kernel of")

    def build(self, job: LoweringJob) -> Lowered:
        """Rewrite the graph as the plan says, delegate to XNNPACK, plan the memory, open the program."""
        job.reporter.phase(Phase.COMPRESS, "int8 ops")
        rewritten = quantize_for_xnnpack(flat_graph(job.captured.program), job)
        job.reporter.phase(Phase.LOWER, "delegating to XNNPACK")
        with hushed():
            edge = _delegated(rewritten.graph_module, job)
            buffer = bytes(_planned(edge).buffer)
        _tell_of_bounds(job)
        return ExecuTorchLowered(job, buffer, kernels_of_edge(edge.exported_program().graph_module, job), rewritten)

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.pte``."""
        self.require()
        return _opened(path.read_bytes(), threads=threads, name=path.name)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:2])


def _tell_of_bounds(job: LoweringJob) -> None:
    bounds = size_bounds(job.captured, job.sizes)
    names = [found.name for found in job.captured.inputs]
    words = [
        f"{name} dim {index}: {most}" for name, dims in zip(names, bounds, strict=True) for index, most in dims.items()
    ]
    if words:
        job.reporter.warn(
            "artifact-limits",
            f"The program plans its memory for sizes up to {', '.join(words)}; larger inputs are refused",
            where="executorch",
        )


def _delegated(graph_module: fx.GraphModule, job: LoweringJob) -> Any:
    """The program in ExecuTorch's dialect, with XNNPACK's parts cut out; its nodes know their ops."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    program = export_bounded(graph_module, job)
    carry_ids(graph_module.graph, program.graph)
    return to_edge_transform_and_lower(
        program,
        partitioner=[XnnpackPartitioner()],
        # What XNNPACK asks to be kept whole (linear layers) is no core operator, which the check would refuse.
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )


def _planned(edge: Any) -> Any:
    from executorch.exir import ExecutorchBackendConfig

    return edge.to_executorch(ExecutorchBackendConfig(extract_delegate_segments=True))


def kernels_of_edge(graph_module: fx.GraphModule, job: LoweringJob) -> list[Kernel]:
    """What the program runs: XNNPACK's blocks op by op, and portable kernels for the rest."""
    heavy = heavy_ops(job.captured.table)
    found: dict[fx.Node, Kernel] = {}
    for part, graph in _parts(graph_module):
        for index, node in enumerate(graph.nodes):
            op_id = carried_id(node)
            if not op_id or "quantize" in str(node.target):
                continue
            name, home = _operator_name(node), _absorbing(node)
            if home in found and part.startswith(_DELEGATE):
                found[home] = dataclasses.replace(found[home], op_ids=(*found[home].op_ids, op_id))
                continue
            planned, dtype = job.plan.precision_of(op_id), result_dtype(node.meta.get("val"))
            found[node] = Kernel(
                name=f"{part}_{index}",
                kind=f"{part} {name}",
                precision=str(planned if _reads_int8(node) and planned in _INT8 else FLOAT_WORDS.get(dtype, "unknown")),
                op_ids=(op_id,),
                is_arithmetic=op_id in heavy and _is_product(name),
                is_conversion="getitem" in name or dtype is None or not dtype.is_floating_point,
            )
    return list(found.values())


def _operator_name(node: fx.Node) -> str:
    found = re.search(r"EdgeOpOverload: ([\w.]+)", str(node.target))
    return found[1] if found else str(getattr(node.target, "__name__", node.target))


def _absorbing(node: fx.Node) -> fx.Node | None:
    """The product or sum whose XNNPACK kernel also computes this activation; None if there is none."""
    if not any(word in str(node.target) for word in _ACTIVATIONS):
        return None
    inputs = [one for one in node.all_input_nodes if one.op == "call_function"]
    if len(inputs) != 1 or len(inputs[0].users) != 1:
        return None
    name = _operator_name(inputs[0])
    return inputs[0] if _is_product(name) or name.startswith("aten.add") else None


def _parts(graph_module: fx.GraphModule) -> list[tuple[str, fx.Graph]]:
    """The graphs of the program, each with the name of what runs it: portable kernels, or a delegated block."""
    parts = [("a portable kernel:", graph_module.graph)]
    for name, child in graph_module.named_children():
        original = getattr(child, "original_module", None)
        if original is not None:
            number = name.rpartition("_")[2]
            parts.append((f"{_DELEGATE} (block {number})", original.graph_module.graph))
    return parts


def _is_product(name: str) -> bool:
    return any(word in name for word in ("convolution", "linear", "mm", "conv"))


def _reads_int8(node: fx.Node) -> bool:
    """Whether all of its inputs are dequantized integers: XNNPACK then uses the int8 kernel."""
    tensors = [one for one in node.all_input_nodes if one.op == "call_function"]
    return bool(tensors) and all("dequantize" in str(one.target) for one in tensors)


class ExecuTorchLowered(Lowered):
    """An opened program, with the job and the graph that it was built from."""

    def __init__(self, job: LoweringJob, buffer: bytes, kernels: Sequence[Kernel], rewritten: RewrittenGraph) -> None:
        self._job = job
        self._buffer = buffer
        self._kernels = kernels
        self._rewritten = rewritten
        self._call = FlatCall(job.captured).around(_opened(buffer, threads=job.threads, name=_ARTIFACT))

    def read_back(self) -> list[OpActual]:
        """Read from the built program what XNNPACK and the portable kernels compute."""
        job = self._job
        folded = {op_id: f"folded into {home} in fp32" for op_id, home in self._rewritten.folded.items()}
        return actuals_of(job, self._kernels, runtime="ExecuTorch", folded=folded, notes=self._rewritten.refused)

    def save(self, folder: Path) -> Path:
        """Write ``model.pte``."""
        path = folder / _ARTIFACT
        path.write_bytes(self._buffer)
        return path


def _opened(buffer: bytes, *, threads: int, name: str) -> Callable[..., list[Tensor]]:
    """The program behind a function over flat tensors.

    Raises: AceError(BAD_FILE) if it is no program of ExecuTorch; when called, AceError(BAD_INPUT) for other sizes.
    """
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    # A program keeps the thread pool that it was opened with: replacing the pool later would crash the process.
    if portable_lib._threadpool_get_thread_count() != threads:
        portable_lib._unsafe_reset_threadpool(threads)
    try:
        with hushed():
            program = Runtime.get().load_program(buffer)
            method = program.load_method("forward")
    except (RuntimeError, ValueError) as error:
        raise library_error(ErrorCode.BAD_FILE, f"ExecuTorch cannot read {name}", error, where=name) from error

    def run(*tensors: Tensor, keep_alive: object = (buffer, program)) -> list[Tensor]:
        # The method reads weights from the buffer without owning it: if the buffer is freed, the process crashes.
        del keep_alive
        try:
            results: list[Tensor] = list(method.execute([tensor.detach().contiguous() for tensor in tensors]))
        except RuntimeError as error:
            raise library_error(
                ErrorCode.BAD_INPUT,
                "ExecuTorch cannot run the program on these inputs",
                error,
                remedy="Give the largest size as an example: memory is planned for sizes up to twice as large.",
            ) from error
        return [one if isinstance(one, Tensor) else torch.tensor(one) for one in results]

    return run
