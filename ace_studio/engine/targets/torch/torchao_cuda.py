"""torchao on CUDA: linear layers at the precisions of a GPU's kernels, everything compiled by Inductor.

Quantizing layers and tracing them again is tested on the CPU with the int8 precisions, which work there too. With
torch 2.11 and torchao 0.18, bf16, fp8, int8-dynamic and int4-weight have run on an H100 (compute capability 9.0);
int8-weight has not. tests/engine/test_cuda.py repeats what needs a GPU.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.apply import RewrittenGraph
from ace_studio.engine.quantize.casts import HALF_DTYPES, cast_problem, insert_casts
from ace_studio.engine.quantize.flat_graph import OP_ID, constant_of, flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import Availability, Lowered, LoweringJob, OpActual
from ace_studio.engine.targets.shared.cuda import CudaTarget, fp8_problem
from ace_studio.engine.targets.torch.inductor import compile_graph
from ace_studio.engine.targets.torch.program import FlatFunction, TorchLowered, load_flat_graph, pinned
from ace_studio.engine.targets.torch.torchao_linears import (
    LINEAR_OP,
    QUANTIZED,
    half_linears,
    quantize_linears,
    retraced,
)
from ace_studio.engine.torch_private.inductor import CompiledNode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Precision


class TorchaoCudaTarget(CudaTarget):
    """torchao's quantized linear layers, compiled for an NVIDIA GPU."""

    def available(self) -> Availability:
        """As every target for NVIDIA GPUs; also whether torch was built for them."""
        found = super().available()
        if found.ok or torch.version.cuda is not None:
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
