"""Eager: the captured graph, op by op, in torch's own kernels."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import fx

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.node_times import time_nodes
from ace_studio.engine.quantize.apply import apply_plan
from ace_studio.engine.quantize.casts import HALF_DTYPES, cast_problem
from ace_studio.engine.quantize.flat_graph import OP_ID, add_constant, call_before, constant_of, tidy
from ace_studio.engine.quantize.weight_only import weight_only_problem
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.torch.program import TorchLowered, load_flat_graph, pinned
from ace_studio.engine.targets.torch.read_back import executed_nodes
from ace_studio.engine.torch_private.operators import half_precision_problem
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import operator_name
from ace_studio.records.recipes.plan import WEIGHT_ONLY, Precision

_INT8_PROBLEM = (
    "eager has no fast int8 kernels: it would emulate them in float, or take more than a hundred times as long; "
    "inductor runs the same plan in int8"
)


CHANNELS_LAST = {"memory_format": "channels_last"}
CONVOLUTIONS_2D = frozenset({"conv2d", "convolution"})
_VIEWS = {torch.ops.aten.view.default: torch.ops.aten.reshape.default}


def put_channels_last(graph_module: fx.GraphModule) -> None:
    """Store the weights of 2D convolutions with their channels last; what a convolution gives follows its weight.

    Views become reshapes, which copy where the order of the elements asks for it.
    """
    for node in list(graph_module.graph.nodes):
        if node.op != "call_function":
            continue
        node.target = _VIEWS.get(node.target, node.target)
        weight = node.args[1] if operator_name(str(node.target)) in CONVOLUTIONS_2D else None
        value = constant_of(graph_module, weight) if isinstance(weight, fx.Node) else None
        if value is not None and value.dim() == 4:
            # Stored in plain order and viewed: torch.export saves no tensor whose order is another.
            stored = add_constant(graph_module, "channels_last", value.permute(0, 2, 3, 1).contiguous(), before=node)
            node.update_arg(1, call_before(node, torch.ops.aten.permute.default, stored, [0, 3, 1, 2]))
    tidy(graph_module)


class EagerTarget(Target):
    """The captured graph interpreted by torch."""

    def device_problem(self, _: torch.device) -> str:
        """Eager runs wherever the model is."""
        return ""

    def precision_problem(self, precision: Precision) -> str:
        """Why not, for int8 activations and 8-bit floats."""
        if precision is Precision.FP32 or precision in WEIGHT_ONLY:
            return ""
        if precision in HALF_DTYPES:
            return half_precision_problem(HALF_DTYPES[precision])
        if precision in {Precision.INT8_STATIC, Precision.INT8_DYNAMIC}:
            return _INT8_PROBLEM
        return f"eager torch has no {precision} kernels that this target uses; torchao-cuda has them on a GPU"

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays fp32."""
        if precision in WEIGHT_ONLY:
            return weight_only_problem(op, precision)
        return cast_problem(op) if precision in HALF_DTYPES else ""

    def options(self, plan: BoundPlan, table: GraphTable) -> Sequence[Mapping[str, str]]:
        """Images with their channels last, for convolutions."""
        del plan
        return [CHANNELS_LAST] if any(operator_name(op) in CONVOLUTIONS_2D for op in table.op) else []

    def build(self, job: LoweringJob) -> Lowered:
        """Put casts and packed weights where the plan wants them."""
        rewritten = apply_plan(job.captured, job.plan, calibration=job.calibration, reporter=job.reporter)
        if job.options == CHANNELS_LAST:
            put_channels_last(rewritten.graph_module)
        return EagerLowered(job, rewritten, rewritten.graph_module)

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.pt2``."""
        return pinned(load_flat_graph(path), threads=threads)


class EagerLowered(TorchLowered):
    """The rewritten graph itself."""

    def twin(self) -> None:
        """None: it is soon built at fp32."""

    def read_back(self) -> list[OpActual]:
        """Run the traced example node by node and note the element types."""
        graph_module = self._rewritten.graph_module
        traced = self._job.captured.example.tensors()
        nodes = executed_nodes(graph_module, traced)
        times_ms = time_nodes(graph_module, traced, check=self._job.reporter.check)
        return _with_times(self.actuals(nodes, runtime="eager torch"), graph_module, times_ms)


def _with_times(
    actuals: Sequence[OpActual], graph_module: fx.GraphModule, times_ms: Mapping[str, float]
) -> list[OpActual]:
    """The actuals with the times of their nodes; the time of a cast is added to the op behind it."""
    homes = {one.op_id: one.fused_into or one.op_id for one in actuals}
    found: dict[str, float] = {}
    pending_ms = 0.0
    for node in graph_module.graph.nodes:
        pending_ms += times_ms.get(node.name, 0.0)
        if node.meta.get(OP_ID) in homes:
            home = homes[node.meta[OP_ID]]
            found[home] = found.get(home, 0.0) + pending_ms
            pending_ms = 0.0
    return [dataclasses.replace(one, latency_ms=found.get(one.op_id)) for one in actuals]
