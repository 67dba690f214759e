"""Names that the results of the captured graph's ops have in the exported ONNX model."""

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.targets.onnx.program import OnnxProgram, tensor_placeholders
from ace_studio.engine.torch_private.sizes import size_text

_ATEN = torch.ops.aten
VIEWS = frozenset(
    {
        _ATEN.view.default,
        _ATEN.reshape.default,
        _ATEN._unsafe_view.default,
        _ATEN.unflatten.int,
        _ATEN.flatten.using_ints,
    }
)
"""Operators that give the same elements another shape."""
_COPIES = frozenset({_ATEN.contiguous.default, _ATEN.clone.default})
_IDLE = _COPIES | VIEWS | {_ATEN.slice.Tensor, _ATEN.expand.default, _ATEN.alias.default, _ATEN.detach.default}
"""Operators that may change nothing: a slice from the first to the last, for one."""


def value_names(program: OnnxProgram, captured: CapturedModel) -> dict[fx.Node, str]:
    """Op or input -> its name in the model; values that the model no longer holds are left out.

    Only a value that a node of the op makes counts: another value may have received its name.
    """
    inputs = dict(zip(tensor_placeholders(captured.program), program.input_names, strict=True))
    made = _results_of_ops(program)
    names = {node: inputs.get(node.name) or made.get(node.name, "") for node in captured.program.graph.nodes}
    names |= _names_of_parts(program, names)
    twins = _first_alike(captured.program.graph)
    for node, name in names.items():  # in the order of the graph, so that chains are followed
        names[node] = name or names[node.all_input_nodes[0] if changes_nothing(node) else twins[node]]
    return {node: name for node, name in names.items() if name}


def _first_alike(graph: fx.Graph) -> dict[fx.Node, fx.Node]:
    """Op -> the first op that computes the same, which is the only one that the exporter keeps."""
    twins: dict[fx.Node, fx.Node] = {}
    firsts: dict[tuple[object, str], fx.Node] = {}
    for node in graph.nodes:
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        arguments = fx.node.map_arg((node.args, node.kwargs), twins.__getitem__)
        is_pure = node.op == "call_function" and not is_random
        twins[node] = firsts.setdefault((node.target, str(arguments)), node) if is_pure else node
    return twins


def changes_nothing(node: fx.Node) -> bool:
    """Whether the exporter leaves the op out, because its result is its input as it is."""
    if node.target not in _IDLE:
        return False
    source = node.all_input_nodes[0]
    return shape_texts(node) == shape_texts(source) and dtype_of(node) is dtype_of(source)


def _names_of_parts(program: OnnxProgram, names: Mapping[fx.Node, str]) -> dict[fx.Node, str]:
    """Names of single results of ops with several, read from the reshapes behind them."""
    reshaped = {node.output[0]: str(node.input[0]) for node in program.model.graph.node if node.op_type == "Reshape"}
    found = {}
    for view, name in names.items():
        source: Any = view.args[0] if view.target in VIEWS else None
        if source is not None and source.target is operator.getitem and name in reshaped:
            found[source] = reshaped[name]
    return found


def _results_of_ops(program: OnnxProgram) -> dict[str, str]:
    """Op id -> the value with its own name, else the result of the last of its nodes."""
    results: dict[str, str] = {}
    for node in program.model.graph.node:
        owners = program.owners.get(node.name, ())
        if owners and len(node.output) == 1 and results.get(owners[0]) != owners[0]:
            results[owners[0]] = node.output[0]
    return results


def shape_texts(node: Any) -> list[str]:
    """The sizes of an op's result as texts, symbols for those that vary; empty if it is no tensor."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return [size_text(size) for size in value.shape] if isinstance(value, Tensor) else []


def dtype_of(node: Any) -> torch.dtype | None:
    """The type of an op's result; None if it is no tensor."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return value.dtype if isinstance(value, Tensor) else None
