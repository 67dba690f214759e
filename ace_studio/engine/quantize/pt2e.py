"""int8 in the captured graph, static and dynamic, by torchao's PT2E flow, with a quantizer that works by op id.

torchao's own x86 quantizer looks for patterns of modules, which a non-strict capture does not have (on a ResNet50 it
says "more than one output node"), and changes Inductor's global settings when it is imported. Ours annotates exactly
the ops that the plan names: the input of each gets a grid per tensor, its weight one per output channel.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.ops.families import ADDING_OPS, aten_ops
from ace_studio.engine.ops.roles import is_convolution
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.flat_graph import OP_ID, add_constant, call_before, constant_of, tidy
from ace_studio.engine.quantize.layout import lay_out_inputs
from ace_studio.engine.quantize.observers import RangeChoice, write_out_range_searches
from ace_studio.engine.quantize.pt2e_specs import activation_specs, fresh_spec, weight_specs
from ace_studio.engine.quantize.residual import added_value
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import ActivationGrid, Scheme

STATIC_INT8_OPS = aten_ops("conv1d.default conv2d.default linear.default")
"""Ops with stored weights that both Inductor and XNNPACK have int8 kernels for."""
PASSING_OPS = aten_ops("max_pool2d.default")
"""Ops that pass int8 values on unchanged, on the grid of their input."""
DYNAMIC_INT8_OPS = aten_ops("linear.default")
"""Ops whose activations can get a grid at every call."""
_WIDE_CHANNELS = 2
_CONV1D_DEFAULTS = (None, None, None, [1], [0], [1], 1)
INSTALL_LINE = "pip install 'torchao>=0.14,<0.20'"


def static_problem(op: str) -> str:
    """Empty if the operator can be static int8 in a torch graph, else why not."""
    if op in STATIC_INT8_OPS | PASSING_OPS | ADDING_OPS:
        return ""
    return f"torch has no int8 kernel for {op} here; it computes in float between quantized ops"


def dynamic_problem(op: str) -> str:
    """Empty if the operator can be dynamic int8 in a torch graph, else why not."""
    return "" if op in DYNAMIC_INT8_OPS else f"only linear ops can be int8-dynamic in torch, {op} stays in float"


def is_torchao_installed() -> bool:
    """Whether torchao is installed; nothing is imported."""
    return importlib.util.find_spec("torchao") is not None


def quantize_int8(
    graph_module: fx.GraphModule,
    *,
    static: Collection[str] = (),
    dynamic: Collection[str] = (),
    calibration: Sequence[Sequence[Tensor]],
    reporter: Reporter,
    schemes: Callable[[str], Scheme] = lambda _: Scheme(),
    ranges: RangeChoice | None = None,
) -> tuple[fx.GraphModule, dict[str, str]]:
    """The graph with int8 weights and int8 inputs of the planned ops.

    Weights are symmetric, activations uint8 with one grid per tensor. Static grids cover the calibration examples;
    dynamic ones are found at every call, and are always affine.

    Args:
        graph_module: A `flat_graph`; it is changed.
        static: Op ids at int8-static.
        dynamic: Op ids at int8-dynamic; only linear ops can be.
        calibration: Flat tensor inputs of each example, at least one; static ranges are found on them.
        reporter: Gets the progress.
        schemes: Op id -> grids.
        ranges: How static ranges follow from the values; None: from the smallest to the largest.

    Returns: The quantized graph, and op id -> why it was left in float.
    Raises: AceError(NOT_INSTALLED) without torchao.
    """
    if not is_torchao_installed():
        raise AceError.of(
            ErrorCode.NOT_INSTALLED, "int8 in a torch graph needs torchao, which is not installed", remedy=INSTALL_LINE
        )
    nodes, refused = _choose(graph_module, {*static, *dynamic})
    for node in [node for node in nodes if node.meta[OP_ID] in dynamic and str(node.target) not in DYNAMIC_INT8_OPS]:
        refused[node.meta[OP_ID]] = dynamic_problem(str(node.target))
        nodes.remove(node)
    if not nodes:
        return graph_module, refused
    nodes = [_as_two_dimensional(graph_module, node) for node in nodes]
    lay_out_inputs(nodes)
    graph_module.recompile()
    for node in nodes:
        _widen_single_channel(graph_module, node)
    with _quiet():
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e  # noqa: PLC0415 - slow

        dynamic_names = {node.name for node in nodes if node.meta[OP_ID] in dynamic}
        grids = {node.name: schemes(node.meta[OP_ID]) for node in nodes}
        observed = prepare_pt2e(
            graph_module, _make_quantizer(nodes, dynamic_names, schemes=grids, ranges=ranges or RangeChoice())
        )
        for index, example in enumerate(calibration):
            reporter.advance(index / len(calibration), f"example {index + 1} of {len(calibration)}")
            observed(*example)
        converted: fx.GraphModule = convert_pt2e(observed)
    for node in nodes:
        op_id = node.meta[OP_ID]
        if op_id in dynamic and schemes(op_id).activations is ActivationGrid.SYMMETRIC:
            refused[op_id] = "torch finds dynamic grids with a zero point, so this one is affine"
    _restore_ids(converted)
    write_out_range_searches(converted)
    tidy(converted)
    return converted, refused


def _choose(graph_module: fx.GraphModule, planned: Collection[str]) -> tuple[list[fx.Node], dict[str, str]]:
    """The nodes to annotate, in order, and op id -> why another planned op is left out."""
    chosen: list[fx.Node] = []
    refused: dict[str, str] = {}
    for node in graph_module.graph.nodes:
        op_id = node.meta.get(OP_ID, "")
        if op_id not in planned:
            continue
        problem = _node_problem(graph_module, node)
        if problem:
            refused[op_id] = problem
        else:
            chosen.append(node)
    chosen = _without_lone_additions(chosen, refused)
    useful = _without_idle_passing(chosen)
    for node in chosen:
        if node not in useful:
            refused[node.meta[OP_ID]] = "nothing after it computes in int8, so it stays in float"
    return [node for node in chosen if node in useful], refused


def _without_lone_additions(chosen: Sequence[fx.Node], refused: dict[str, str]) -> list[fx.Node]:
    """The nodes but for additions that no int8 convolution can do; the reasons go into ``refused``."""
    kept = []
    for node in chosen:
        if str(node.target) in ADDING_OPS and added_value(node, chosen) is None:
            refused[node.meta[OP_ID]] = "no int8 convolution in front of it can add in place, so it stays in float"
        else:
            kept.append(node)
    return kept


def _node_problem(graph_module: fx.GraphModule, node: fx.Node) -> str:
    problem = static_problem(str(node.target))
    if problem or str(node.target) in PASSING_OPS | ADDING_OPS:
        return problem
    if constant_of(graph_module, node.args[1]) is None:
        return "its weight is computed, not stored"
    value = node.args[0].meta.get("val") if isinstance(node.args[0], fx.Node) else None
    if not isinstance(value, Tensor) or value.dtype is not torch.float32:
        return "its input is not float32"
    return ""


def _without_idle_passing(chosen: Sequence[fx.Node]) -> set[fx.Node]:
    """The nodes but for ops that only pass values on and have no int8 op among their readers."""
    useful: set[fx.Node] = set()
    for node in reversed(chosen):
        if str(node.target) not in PASSING_OPS or any(reader in useful for reader in node.users):
            useful.add(node)
    return useful


def _as_two_dimensional(graph_module: fx.GraphModule, node: fx.Node) -> fx.Node:
    """Write a 1-d convolution as a 2-d one of height 1, with a ReLU behind it; other nodes are returned as they are.

    Inductor (torch 2.11 to 2.13) infers a wrong shape for an int8 1-d convolution, and what follows does not compile.
    """
    if node.target is not torch.ops.aten.conv1d.default:
        return node
    weight = constant_of(graph_module, node.args[1])
    assert weight is not None  # `_node_problem` checked it
    arguments: list[Any] = [*node.args, *_CONV1D_DEFAULTS[len(node.args) :]]
    x, _, bias, stride, padding, dilation, groups = arguments
    name = f"{node.args[1].target}_2d"  # type: ignore[union-attr]
    wide = add_constant(graph_module, name, weight.unsqueeze(2), before=node)
    flat = call_before(node, torch.ops.aten.unsqueeze.default, x, 2)
    strides = [[1, *stride], [0, *padding], [1, *dilation]]
    result = call_before(node, torch.ops.aten.conv2d.default, flat, wide, bias, *strides, groups)
    result.meta[OP_ID] = node.meta[OP_ID]
    users = list(node.users)
    if len(users) == 1 and users[0].target is torch.ops.aten.relu.default:
        relu = call_before(users[0], torch.ops.aten.relu.default, result)
        relu.meta[OP_ID] = users[0].meta[OP_ID]
        users[0].replace_all_uses_with(call_before(users[0], torch.ops.aten.squeeze.dim, relu, 2))
        graph_module.graph.erase_node(users[0])
    else:
        node.replace_all_uses_with(call_before(node, torch.ops.aten.squeeze.dim, result, 2))
    graph_module.graph.erase_node(node)
    return result


def _widen_single_channel(graph_module: fx.GraphModule, node: fx.Node) -> None:
    """Repeat the one channel of a convolution's input and give the copies zero weights: the same function.

    At a dynamic batch Inductor (torch 2.11 to 2.13) gets the memory layout of an int8 convolution's result wrong if
    its input has a single channel, and the generated code stops at its own assertion. oneDNN pads the channels
    in any case, so this costs little; two is the smallest number that works.
    """
    x = node.args[0]
    weight = constant_of(graph_module, node.args[1]) if len(node.args) > 1 else None
    if not isinstance(x, fx.Node) or weight is None or not is_convolution(str(node.target)):
        return
    value = x.meta["val"]
    if weight.shape[1] != 1 or value.shape[1] != 1 or all(isinstance(size, int) for size in value.shape):
        return
    spatial = weight.dim() - 2
    padding = [0, 0] * spatial + [0, _WIDE_CHANNELS - 1]
    wide = torch.nn.functional.pad(weight, padding)
    sizes = [-1, _WIDE_CHANNELS, *[-1] * spatial]
    repeated = call_before(node, torch.ops.aten.expand.default, x, sizes)
    name = f"{node.args[1].target}_wide"  # type: ignore[union-attr]
    node.args = (repeated, add_constant(graph_module, name, wide, before=node), *node.args[2:])


def _make_quantizer(
    nodes: Sequence[fx.Node], dynamic_names: Collection[str], *, schemes: Mapping[str, Scheme], ranges: RangeChoice
) -> Any:
    """Torchao's `Quantizer` over these nodes. Made here because the base class can only be imported with torchao."""
    from torchao.quantization.pt2e.quantizer import (  # noqa: PLC0415 - slow
        QuantizationAnnotation,
        Quantizer,
        SharedQuantizationSpec,
    )

    static, fresh, weights = activation_specs(ranges, is_signed=False), fresh_spec(is_signed=False), weight_specs()
    wanted = {node.name for node in nodes}
    added = {node.name: added_value(node, nodes) for node in nodes if str(node.target) in ADDING_OPS}
    names = {name: value.name for name, value in added.items() if value is not None}

    class PlanQuantizer(Quantizer):  # type: ignore[misc]  # torchao is not typed
        """Writes the plan as annotations."""

        def annotate(self, model: fx.GraphModule) -> fx.GraphModule:
            """Annotate the wanted nodes of the graph that torchao prepared."""
            for node in model.graph.nodes:
                if node.name in wanted:
                    node.meta["quantization_annotation"] = self._annotation(node)
            return model

        def _annotation(self, node: fx.Node) -> Any:
            scheme = schemes[node.name]
            activation = static[scheme.activations]
            if str(node.target) in PASSING_OPS:
                same = SharedQuantizationSpec((node.args[0], node))
                return QuantizationAnnotation({node.args[0]: activation}, output_qspec=same, _annotated=True)
            if str(node.target) in ADDING_OPS:
                inputs = [one for one in node.all_input_nodes if one.name == names.get(node.name)]
                return QuantizationAnnotation(dict.fromkeys(inputs, activation), _annotated=True)
            given = fresh if node.name in dynamic_names else activation
            pair = {node.args[0]: given, node.args[1]: weights[scheme.weights]}
            return QuantizationAnnotation(pair, _annotated=True)

        def validate(self, model: fx.GraphModule) -> None:
            """Nothing to check: the nodes were chosen by what they are."""

    return PlanQuantizer()


def _restore_ids(graph_module: fx.GraphModule) -> None:
    """Remove the op id from the observers' nodes: torchao copies their op's ``meta``."""
    for node in graph_module.graph.nodes:
        if "quantize" in str(node.target):
            node.meta.pop(OP_ID, None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence torchao's warnings (kernels for other devices, deprecations): no user can act on them."""
    loggers = [logging.getLogger(name) for name in ("torchao", "torch.utils._pytree")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for category in (UserWarning, FutureWarning, DeprecationWarning):
                warnings.simplefilter("ignore", category)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
