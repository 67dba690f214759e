"""torchao on CUDA: linear layers at the precisions of a GPU's kernels, everything compiled by Inductor.

Quantizing layers and tracing them again is tested on the CPU with the int8 precisions, which work there too. With
torch 2.11 and torchao 0.18, bf16, fp8, int8-dynamic and int4-weight have run on an H100 (compute capability 9.0);
int8-weight has not. tests/engine/test_cuda.py repeats what needs a GPU.

Torchao quantizes ``nn.Linear`` and ignores the ops of a graph. So every planned op becomes a module, is quantized, and
the graph is traced again, which leaves plain tensors and the kernels that torchao chose. Works on any device.
"""

import dataclasses
import importlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.apply import RewrittenGraph
from ace_studio.engine.quantize.casts import HALF_DTYPES, cast_problem, insert_casts
from ace_studio.engine.quantize.flat_graph import OP_ID, constant_of, flat_graph, tidy
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.weight_only import kernel_group
from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import Availability, Lowered, LoweringJob, OpActual
from ace_studio.engine.targets.shared.carried_ids import carried_id, carry_ids
from ace_studio.engine.targets.shared.cuda import CudaTarget, cuda_problem, fp8_problem
from ace_studio.engine.targets.torch.inductor import compile_graph
from ace_studio.engine.targets.torch.program import FlatFunction, TorchLowered, load_flat_graph, pinned, reexport
from ace_studio.engine.torch_private.inductor import CompiledNode
from ace_studio.engine.torch_private.sizes import is_always
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Precision


class TorchaoCudaTarget(CudaTarget):
    """torchao's quantized linear layers, compiled for an NVIDIA GPU."""

    def available(self) -> Availability:
        """As every target for NVIDIA GPUs; also whether torch was built for them."""
        found = super().available()
        if not cuda_problem() or torch.version.cuda is not None:
            return found
        return dataclasses.replace(found, install=f"a CUDA build of torch, and {self.row.install}")

    def precision_problem(self, precision: Precision) -> str:
        """Why not."""
        if precision is Precision.FP8:
            return fp8_problem()
        if precision is Precision.INT8_STATIC:
            return "torchao's GPU kernels find 8-bit ranges at every call: use int8-dynamic, or tensorrt"
        return ""

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays fp32."""
        if precision in HALF_DTYPES:
            return cast_problem(op)
        if precision in QUANTIZED and op != LINEAR_OP:
            return f"torchao quantizes linear layers on a GPU, {op} stays in float"
        return ""

    def build(self, job: LoweringJob) -> Lowered:
        """Quantize the planned layers, put casts where the plan wants them, compile."""
        rewritten = quantized_graph(job)
        run, nodes = compile_graph(rewritten.graph_module, threads=job.threads, reporter=job.reporter)
        return TorchaoLowered(job, rewritten, run, nodes)

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.pt2``, which calls torchao's operators, and compile it for this GPU."""
        with hushed():
            importlib.import_module("torchao.quantization")
        run, _ = compile_graph(load_flat_graph(path), threads=threads, reporter=Reporter())
        return pinned(run, threads=threads)


def quantized_graph(job: LoweringJob) -> RewrittenGraph:
    """The captured graph as the plan wants it, as plain tensors and operators. Works on any device."""
    job.reporter.phase(Phase.COMPRESS, "torchao's layers")
    rewritten = RewrittenGraph(flat_graph(job.captured.program))
    halves = {op_id: precision for op_id, precision in job.plan.assigned.items() if precision in HALF_DTYPES}
    if halves:
        rewritten.folded = fold_batch_norms(rewritten.graph_module, halves.keys())
    rewritten.refused |= insert_casts(rewritten.graph_module, halves | half_linears(rewritten.graph_module, job.plan))
    rewritten.refused |= quantize_linears(rewritten.graph_module, job.plan)
    rewritten.graph_module = retraced(rewritten.graph_module, job.captured)
    return rewritten


class TorchaoLowered(TorchLowered):
    """The compiled graph."""

    def __init__(
        self, job: LoweringJob, rewritten: RewrittenGraph, run: FlatFunction, nodes: Sequence[CompiledNode]
    ) -> None:
        super().__init__(job, rewritten, run)
        self._nodes = nodes

    def read_back(self) -> list[OpActual]:
        """As Inductor says it; 8-bit weights that are widened inside a kernel are reported by how they are stored."""
        stored = stored_in_int8(self._rewritten)
        return [
            dataclasses.replace(
                one, actual=str(Precision.INT8_WEIGHT), reason=f"stored in 8 bits, widened in the kernel; {one.reason}"
            )
            if one.op_id in stored and self._job.plan.precision_of(one.op_id) is Precision.INT8_WEIGHT
            else one
            for one in self.actuals(self._nodes, runtime="torchao and Inductor")
        ]


def stored_in_int8(rewritten: RewrittenGraph) -> frozenset[str]:
    """Ids of the ops that read a stored 8-bit tensor."""
    found = set()
    for node in rewritten.graph_module.graph.nodes:
        constants = [constant_of(rewritten.graph_module, one) for one in node.all_input_nodes]
        if OP_ID in node.meta and any(one is not None and one.dtype is torch.int8 for one in constants):
            found.add(node.meta[OP_ID])
    return frozenset(found)


LINEAR_OP = "aten.linear.default"
_PREFIX = "ace_linear_"
_IN_BF16 = frozenset({Precision.INT4_WEIGHT, Precision.FP8})
"""Kernels that take bfloat16 activations only."""
_IN_8_BITS = frozenset({Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT})
"""Kernels that take activations of any floating-point type."""
QUANTIZED = _IN_8_BITS | _IN_BF16
"""The precisions of linear layers alone."""
_INT8_LEAST_ROWS = 17
"""cuBLAS multiplies 8-bit matrices of at least so many rows. Source: the checks of ``torch._int_mm`` on CUDA."""
_STEPS = {Precision.INT8_DYNAMIC: 8, Precision.FP8: 16}
"""Both sizes of a weight are multiples of this. Source: the checks of ``torch._int_mm`` and ``torch._scaled_mm``."""


class _InBf16(nn.Module):
    """A linear layer in bfloat16 between casts."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear.to(torch.bfloat16)

    def forward(self, x: Tensor) -> Tensor:
        """Rows [..., k] -> [..., n], of their own type."""
        result: Tensor = self.linear(x.to(torch.bfloat16))
        return result.to(x.dtype)


class _InEnoughRows(nn.Module):
    """An 8-bit linear layer that gets rows of zeros after its own, as many as cuBLAS needs beside one."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        """Rows [..., k] -> [..., n]."""
        rows = x.reshape(-1, x.shape[-1])
        padded: Tensor = self.linear(functional.pad(rows, (0, 0, 0, _INT8_LEAST_ROWS - 1)))
        return padded[: rows.shape[0]].reshape(*x.shape[:-1], padded.shape[-1])


def torchao_config(precision: Precision, *, group_size: int) -> Any:
    """Torchao's configuration for a precision; the group is that of 4-bit weights (0: the widest)."""
    from torchao.quantization import (
        Float8DynamicActivationFloat8WeightConfig,
        Int4WeightOnlyConfig,
        Int8DynamicActivationInt8WeightConfig,
        Int8WeightOnlyConfig,
        PerRow,
    )

    makers: dict[Precision, Callable[[], Any]] = {
        Precision.INT8_DYNAMIC: lambda: Int8DynamicActivationInt8WeightConfig(set_inductor_config=False),
        Precision.INT8_WEIGHT: lambda: Int8WeightOnlyConfig(set_inductor_config=False),
        Precision.INT4_WEIGHT: lambda: Int4WeightOnlyConfig(
            group_size=kernel_group(group_size), int4_packing_format="tile_packed_to_4d", set_inductor_config=False
        ),
        Precision.FP8: lambda: Float8DynamicActivationFloat8WeightConfig(
            granularity=PerRow(), set_inductor_config=False
        ),
    }
    return makers[precision]()


def half_linears(graph_module: fx.GraphModule, plan: BoundPlan) -> dict[str, Precision]:
    """Linear ops that read and give 16 bits though their weights are quantized: op id -> that type.

    They need casts of the graph, which cancel between neighbours, rather than casts of their own.
    """
    rest = next((one for one in (plan.plan.rest, plan.plan.default) if one in HALF_DTYPES), None)
    found: dict[str, Precision] = {}
    for node in graph_module.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default):
        op_id, value = node.meta.get(OP_ID, ""), node.meta["val"]
        precision = plan.precision_of(op_id)
        half = Precision.BF16 if precision in _IN_BF16 else rest if precision in _IN_8_BITS else None
        if half is not None and value.dtype is torch.float32 and not _refusal(graph_module, node, precision):
            found[op_id] = half
    return found


def _refusal(graph_module: fx.GraphModule, node: fx.Node, precision: Precision) -> str:
    """Empty if an op can be quantized as far as is known without torchao, else why not."""
    weight = constant_of(graph_module, node.args[1]) if str(node.target) == LINEAR_OP else None
    if weight is None:
        return "torchao quantizes linear layers with stored weights; this op is none"
    step = _STEPS.get(precision, 1)
    if any(size % step for size in weight.shape):
        return f"the GPU's {precision} kernel needs multiples of {step}; this weight is {_sizes(weight)}"
    return ""


def quantize_linears(graph_module: fx.GraphModule, plan: BoundPlan) -> dict[str, str]:
    """Quantize every planned linear op of a graph, in place; gives op id -> why one of them was left.

    Raises: AceError(UNSUPPORTED) if torchao refuses a layer.
    """
    refused: dict[str, str] = {}
    for number, node in enumerate(list(graph_module.graph.nodes)):
        op_id = node.meta.get(OP_ID, "")
        precision = plan.precision_of(op_id)
        if precision not in QUANTIZED:
            continue
        if problem := _refusal(graph_module, node, precision):
            refused[op_id] = problem
            continue
        layer = _layer_of(graph_module, node)
        host = _host_of(layer, precision, node.args[0].meta["val"])
        config = torchao_config(precision, group_size=plan.scheme_of(op_id).group_size)
        quantized = _quantized(host, config, op_id, precision)
        if quantized is None:
            refused[op_id] = f"torchao left its {_sizes(layer.weight)} weight as it was"
            continue
        name = f"{_PREFIX}{number}"
        graph_module.add_module(name, quantized)
        with graph_module.graph.inserting_before(node):
            called = graph_module.graph.call_module(name, (node.args[0],))
        called.meta |= {OP_ID: op_id, "val": node.meta.get("val")}
        node.replace_all_uses_with(called)
        graph_module.graph.erase_node(node)
    tidy(graph_module)
    return refused


def _layer_of(graph_module: fx.GraphModule, node: fx.Node) -> nn.Linear:
    weight = constant_of(graph_module, node.args[1])
    assert weight is not None
    bias = constant_of(graph_module, node.args[2]) if len(node.args) > 2 else None
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach().clone(), requires_grad=False)
    return layer.eval()


def _sizes(weight: Tensor) -> str:
    return " x ".join(map(str, weight.shape))


def _host_of(layer: nn.Linear, precision: Precision, rows: Tensor) -> nn.Module:
    """The layer in a module that gives its kernel what it needs, for inputs like these [..., k]."""
    if precision in _IN_BF16:
        return _InBf16(layer)
    if precision is Precision.INT8_DYNAMIC and not is_always(math.prod(rows.shape[:-1]) >= _INT8_LEAST_ROWS):
        return _InEnoughRows(layer)
    return nn.Sequential(layer)


def _quantized(host: nn.Module, config: Any, op_id: str, precision: Precision) -> nn.Module | None:
    """The layer's host with torchao's weight as plain tensors; None if torchao did not quantize it."""
    try:
        with hushed():
            from torchao.quantization import quantize_
            from torchao.utils import unwrap_tensor_subclass

            quantize_(host, config)
            is_changed = any(type(one) is not nn.Parameter for one in host.parameters())
            if not is_changed:
                return None
            unwrap_tensor_subclass(host)
    except (RuntimeError, ValueError, TypeError, AssertionError, ImportError, NotImplementedError) as error:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"torchao cannot quantize {op_id} to {precision}",
            why=(str(error).strip() or type(error).__name__).splitlines()[0],
            remedy="Keep this op at another precision with a rule.",
            where=op_id,
        ) from error
    return host


def retraced(graph_module: fx.GraphModule, captured: CapturedModel) -> fx.GraphModule:
    """The graph with the modules inlined; every node has its op id."""
    with torch.no_grad(), hushed():
        program = reexport(graph_module, captured)
    carry_ids(graph_module.graph, program.graph)
    flat = flat_graph(program)
    for node in flat.graph.nodes:
        node.meta.pop(OP_ID, None)
        if op_id := carried_id(node):
            node.meta[OP_ID] = op_id
    return flat
