"""Quantizes the captured graph for XNNPACK with torchao's PT2E flow, annotated as the plan says.

Unlike in the graph for Inductor, activations are signed, and every quantized op has a quantized result (behind its
ReLU, if one follows), because XNNPACK computes from int8 to int8.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.ops.families import RELUS, aten_ops
from ace_studio.engine.quantize.apply import RewrittenGraph
from ace_studio.engine.quantize.flat_graph import OP_ID, constant_of, put_state_back, tidy
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.observers import UNSEEN
from ace_studio.engine.quantize.pt2e import (
    ANNOTATION,
    DYNAMIC_INT8_OPS,
    PASSING_OPS,
    STATIC_INT8_OPS,
    converted_by_torchao,
)
from ace_studio.engine.quantize.pt2e_specs import activation_specs, fresh_spec, weight_specs
from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.records.recipes.plan import Precision

_ADDITIONS = aten_ops("add.Tensor")
"""Without ``add_``, which was not tried with the flow."""


def executorch_op_problem(op: str, precision: Precision) -> str:
    """Empty if XNNPACK takes the operator at an int8 precision, else why not."""
    if precision is Precision.INT8_DYNAMIC:
        return "" if op in DYNAMIC_INT8_OPS else f"XNNPACK finds ranges at every call for linear ops only, not {op}"
    if op in STATIC_INT8_OPS | _ADDITIONS | PASSING_OPS:
        return ""
    return f"this target asks XNNPACK for no int8 kernel of {op}; it computes in fp32 between quantized ops"


def quantize_for_xnnpack(graph_module: fx.GraphModule, job: LoweringJob) -> RewrittenGraph:
    """The graph with the int8 ops of the job's plan, and what became of its ops."""
    static, dynamic = job.plan.ops_at(Precision.INT8_STATIC), job.plan.ops_at(Precision.INT8_DYNAMIC)
    folded = fold_batch_norms(graph_module, static | dynamic)
    refused: dict[str, str] = {}
    chosen = []
    for node in graph_module.graph.nodes:
        op_id = node.meta.get(OP_ID, "")
        if op_id in folded or op_id not in static | dynamic:
            continue
        if problem := _node_problem(graph_module, node):
            refused[op_id] = problem
        else:
            chosen.append(node)
    if not chosen:
        return RewrittenGraph(graph_module, folded, refused)
    with hushed():
        annotate = _annotator({node.name: node.meta[OP_ID] in dynamic for node in chosen}, job)
        examples = job.calibration() if static else [job.captured.example]
        flat = [example.tensors() for example in examples]
        converted, unseen = converted_by_torchao(graph_module, annotate, flat, job.reporter)
    refused |= dict.fromkeys(unseen & static, UNSEEN)
    put_state_back(converted, job.captured.program)
    tidy(converted)
    return RewrittenGraph(converted, folded, refused)


def _node_problem(graph_module: fx.GraphModule, node: fx.Node) -> str:
    values = [one.meta.get("val") for one in (node, *node.all_input_nodes)]
    if any(isinstance(value, Tensor) and value.dtype is not torch.float32 for value in values):
        return "its inputs and its result are not all float32"
    if str(node.target) in STATIC_INT8_OPS and constant_of(graph_module, node.args[1]) is None:
        return "its weight is computed, not stored"
    if str(node.target) in _ADDITIONS and sum(isinstance(one, fx.Node) for one in node.args) != 2:
        return "it adds a number, which needs no int8 kernel"
    return ""


def _annotator(names: Mapping[str, bool], job: LoweringJob) -> Callable[[fx.Node], None]:
    """What writes the plan as torchao's annotations of these nodes, and whether each is dynamic."""
    from torchao.quantization.pt2e.quantizer import QuantizationAnnotation, SharedQuantizationSpec

    static, fresh, weights = activation_specs(job.ranges, is_signed=True), fresh_spec(is_signed=True), weight_specs()

    def write(node: fx.Node, inputs: Mapping[Any, Any], result: Any = None) -> None:
        node.meta[ANNOTATION] = QuantizationAnnotation(dict(inputs), output_qspec=result, _annotated=True)

    def annotate(node: fx.Node) -> None:
        if node.name not in names:
            return
        scheme = job.plan.scheme_of(node.meta[OP_ID])
        activation = static[scheme.activations]
        inputs: dict[Any, Any] = {one: activation for one in node.args if isinstance(one, fx.Node)}
        last = _absorbed_behind(node)
        if names[node.name]:
            write(node, {node.args[0]: fresh, node.args[1]: weights[scheme.weights]})
        elif str(node.target) in PASSING_OPS:
            write(node, {node.args[0]: activation}, SharedQuantizationSpec((node.args[0], node)))
        else:
            if str(node.target) in STATIC_INT8_OPS:
                inputs = {node.args[0]: activation, node.args[1]: weights[scheme.weights]}
            write(node, inputs, activation if last is node else None)
            if last is not node:
                write(last, {}, activation)

    return annotate


def _absorbed_behind(node: fx.Node) -> fx.Node:
    """The ReLU that XNNPACK computes in the same kernel, or the node itself."""
    users = list(node.users)
    return users[0] if len(users) == 1 and str(users[0].target) in RELUS else node
