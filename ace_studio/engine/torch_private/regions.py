"""Blocks of gradient mode and autocast in exported programs, which torch keeps as one call of a graph of their own."""

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

_HIDDEN_ARGUMENTS = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}
"""Operator of a block -> how many of its arguments come before its graph and what that reads."""


def inline_plain_regions(program: ExportedProgram) -> None:
    """Replace blocks that change no value by their ops, so that these are seen, planned and quantized.

    Gradient mode changes no value. Autocast changes none where it is off, or is that of a device that the program does
    not use. Blocks within a block that does change values stay.
    """
    devices = _devices(program)
    while regions := [node for node in program.graph.nodes if _changes_nothing(node, devices)]:
        for node in regions:
            _inline(program, node)
        program.graph_module.delete_all_unused_submodules()
    program.graph_module.recompile()


@dataclass(frozen=True)
class CastRegion:
    """A block of autocast that computes in another type, one call in the program."""

    dtype: str
    """``bfloat16``."""
    op_count: int
    stack_trace: str
    """That of its first op, as torch wrote it; may be empty."""


def cast_regions(program: ExportedProgram) -> list[CastRegion]:
    """The blocks of autocast that `inline_plain_regions` left."""
    found = []
    for node in program.graph.nodes:
        if _name_of(node) == "wrap_with_autocast":
            device, dtype, _, _, source = node.args[:5]
            ops = [one for one in getattr(program.graph_module, source.target).graph.nodes if one.op == "call_function"]
            used = str(dtype or torch.get_autocast_dtype(device)).removeprefix("torch.")
            traces = [trace for one in ops if (trace := one.meta.get("stack_trace"))]
            found.append(CastRegion(used, len(ops), traces[0] if traces else ""))
    return found


def _devices(program: ExportedProgram) -> set[str]:
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    return {value.device.type for value in values if isinstance(value, torch.Tensor)}


def _changes_nothing(node: fx.Node, devices: set[str]) -> bool:
    name = _name_of(node)
    if name == "wrap_with_autocast":
        device, _, is_on = node.args[:3]
        return not (is_on and device in devices)
    return name == "wrap_with_set_grad_enabled"


def _name_of(node: fx.Node) -> str:
    return str(node.target) if isinstance(node.target, torch._ops.HigherOrderOperator) else ""


def _inline(program: ExportedProgram, call: fx.Node) -> None:
    """Copy the ops of a block to where it is called."""
    parent, graph = program.graph_module, program.graph
    hidden = _HIDDEN_ARGUMENTS[_name_of(call)]
    source, given = call.args[hidden], call.args[hidden + 1 :]
    assert isinstance(source, fx.Node)
    region = getattr(parent, str(source.target))
    copies: dict[fx.Node, Any] = {}
    inputs = iter(given)
    with graph.inserting_before(call):
        for node in region.graph.nodes:
            if node.op == "placeholder":
                copies[node] = next(inputs)
            elif node.op == "output":
                results = fx.map_arg(node.args[0], lambda one: copies[one])
            else:
                copies[node] = graph.node_copy(node, lambda one: copies[one])
            if node.op == "get_attr":
                copies[node].target = _adopted(parent, region, str(node.target), f"{source.target}_{node.name}")
    for use in list(call.users):
        assert use.target is operator.getitem
        result = results[use.args[1]]
        use.replace_all_uses_with(result)
        program.graph_signature.replace_all_uses(use.name, result.name)
        graph.erase_node(use)
    graph.erase_node(call)
    if not source.users:
        graph.erase_node(source)


def _adopted(parent: fx.GraphModule, region: fx.GraphModule, path: str, name: str) -> str:
    """Give the parent what a block holds, such as the graph of an inner block, under a name that is free."""
    free = name
    while hasattr(parent, free):
        free += "_"
    setattr(parent, free, operator.attrgetter(path)(region))
    return free
