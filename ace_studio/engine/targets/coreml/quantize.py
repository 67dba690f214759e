"""Rewrites the captured graph for Core ML: 8-bit weights, and pairs of quantize and dequantize around int8 ops."""

import torch
from torch import Tensor, fx

from ace_studio.engine.ops.families import aten_ops
from ace_studio.engine.ops.roles import TABLE_NOTE, is_product, op_role, stores_table
from ace_studio.engine.quantize.affine import symmetric_grid
from ace_studio.engine.quantize.apply import RewrittenGraph
from ace_studio.engine.quantize.flat_graph import OP_ID, add_constant, call_before, constant_of, flat_graph, tidy
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.pt2e import PASSING_OPS, STATIC_INT8_OPS
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.executorch.quantize import quantize_for_xnnpack
from ace_studio.engine.targets.shared.kernels import heavy_ops
from ace_studio.engine.torch_private.operators import register_quantized_ops
from ace_studio.records.recipes.plan import Precision

INT8 = frozenset({Precision.INT8_STATIC, Precision.INT8_WEIGHT})
_STATIC_OPS = STATIC_INT8_OPS | PASSING_OPS | aten_ops("add.Tensor")
_LARGEST = 127


def coreml_op_problem(op: str, precision: Precision) -> str:
    """Empty if the operator can be at an int8 precision, else why not."""
    if stores_table(op, precision):
        return ""
    if precision is Precision.INT8_STATIC:
        known = op in _STATIC_OPS
        return "" if known else f"this target puts no 8-bit values around {op}; it computes in floats between others"
    return "" if is_product(op) else f"{op} has no weight that Core ML could keep in 8 bits"


def quantized_graph(job: LoweringJob) -> RewrittenGraph:
    """The captured graph with its batch norms folded and the int8 ops of the job's plan.

    Values around int8-static ops get the same pairs as for XNNPACK: signed, around everything that an op reads and
    gives. Core ML turns a pair on a stored weight into a weight that is stored in 8 bits.
    """
    graph_module = flat_graph(job.captured.program)
    folded = fold_batch_norms(graph_module, heavy_ops(job.captured.table))
    rewritten = quantize_for_xnnpack(graph_module, job)
    refused = rewritten.refused | _store_in_8_bits(rewritten.graph_module, job)
    return RewrittenGraph(rewritten.graph_module, folded, refused)


def _store_in_8_bits(graph_module: fx.GraphModule, job: LoweringJob) -> dict[str, str]:
    """Replace the weights of int8-weight ops, and tables, by integers and their scales, in place.

    One scale per output channel or row of a table, symmetric. Returns: op id -> why it was left, or what was done
    instead.
    """
    notes: dict[str, str] = {}
    if not job.plan.precisions & INT8:
        return notes
    register_quantized_ops()
    for node in [one for one in graph_module.graph.nodes if OP_ID in one.meta]:
        op, op_id = str(node.target), node.meta[OP_ID]
        precision = job.plan.precision_of(op_id)
        is_table = stores_table(op, precision)
        if not is_table and (precision is not Precision.INT8_WEIGHT or not is_product(op)):
            continue
        role = op_role(op)
        place = 0 if role is None else role.weight
        weight = constant_of(graph_module, node.args[place])
        if weight is None or weight.dtype is not torch.float32:
            notes[op_id] = "its weight is computed, not stored, or not float32"
            continue
        axis = 0 if role is None else role.weight_axes(node, weight).output
        node.update_arg(place, _widened(graph_module, node, weight, name=str(node.args[place].target), axis=axis))
        if precision is not Precision.INT8_WEIGHT:
            notes[op_id] = TABLE_NOTE
    tidy(graph_module)
    return notes


def _widened(graph_module: fx.GraphModule, node: fx.Node, weight: Tensor, *, name: str, axis: int) -> fx.Node:
    """The weight as 8-bit integers that are widened in front of ``node``, with a scale for each index of ``axis``."""
    others = [dim for dim in range(weight.dim()) if dim != axis]
    grid = symmetric_grid(weight.abs().amax(others), axis=axis)
    integers = add_constant(graph_module, f"{name}_int8", grid.quantize(weight), before=node)
    scales = add_constant(graph_module, f"{name}_scales", grid.scale, before=node)
    zeros = add_constant(graph_module, f"{name}_zeros", torch.zeros_like(grid.scale, dtype=torch.int8), before=node)
    widen = torch.ops.quantized_decomposed.dequantize_per_channel.default
    return call_before(node, widen, integers, scales, zeros, axis, -_LARGEST, _LARGEST, torch.int8)
