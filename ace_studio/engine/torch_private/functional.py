"""Writes in place that other values see, rewritten as ops that only give values.

A pass that puts a cast or a quantization behind an op gives its readers a copy. A later write through a view of that op
changes either the copy or the original, and readers of the other one miss it.
"""

import operator
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from ace_studio.engine.torch_private.exporting import results_in_a_list
from ace_studio.engine.torch_private.operators import gives_view, writes_in_place
from ace_studio.records.ops import operator_name

_NAME = "ace_name"
"""Key of our entry in ``node.meta["custom"]``, which torch copies to what a node becomes."""
_NORM = torch.ops.aten._native_batch_norm_legit_no_training.default


def without_shared_writes(program: ExportedProgram) -> tuple[ExportedProgram, dict[str, str]]:
    """The program, in functional form if a write in place is read through another value.

    Returns: It, and the name of each call -> the name of the call in the given program that it computes. What only
    copies a written part back into its whole has no entry.
    """
    calls = _calls(program.graph)
    if not _has_shared_write(program.graph):
        return program, {node.name: node.name for node in calls}
    words = {node.name: _word(node.target) for node in calls}
    before = {node: node.meta["custom"] for node in calls if "custom" in node.meta}
    for node in calls:
        node.meta["custom"] = {**(before.get(node) or {}), _NAME: node.name}
    try:
        # torch uses what it has deprecated
        with warnings.catch_warnings(action="ignore"), torch.no_grad(), results_in_a_list(program):
            functional = program.run_decompositions({})
    finally:
        for node in calls:
            del node.meta["custom"]
        for node, custom in before.items():
            node.meta["custom"] = custom
    signature = functional.module_call_graph[0].signature
    assert signature is not None
    signature.out_spec = program.call_spec.out_spec
    _restore_batch_norms(functional.graph_module)
    candidates: dict[str, list[fx.Node]] = {}
    for node in _calls(functional.graph):
        if origin := (node.meta.get("custom") or {}).get(_NAME):
            candidates.setdefault(origin, []).append(node)
    found = {}
    for origin, nodes in candidates.items():
        same = [node for node in nodes if _word(node.target) == words[origin]]
        found[(same or nodes)[-1].name] = origin
    return functional, found


def written_buffers(program: ExportedProgram) -> tuple[str, ...]:
    """Names of the buffers that the graph writes into, also through views of them, or replaces."""
    signature = program.graph_signature
    names = signature.inputs_to_buffers
    written = {names[node.name] for node in written_nodes(program.graph) if node.name in names}
    return tuple(sorted({*written, *signature.buffers_to_mutate.values()}))


def written_nodes(graph: fx.Graph) -> set[fx.Node]:
    """The nodes whose memory an op writes into, also through a view."""
    owners: dict[fx.Node, fx.Node] = {}
    found = set()
    for node in _calls(graph):
        first = node.args[0] if node.args and isinstance(node.args[0], fx.Node) else None
        if first is not None and writes_in_place(node.target):
            found.add(owners.get(first, first))
        if first is not None and _gives_alias(node, owners) and not _copies(first, node):
            owners[node] = owners.get(first, first)
    return found


def _copies(first: fx.Node, node: fx.Node) -> bool:
    """Whether an op that may give memory of its first argument gives a copy here."""
    before, after = first.meta.get("val"), node.meta.get("val")
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return False
    may_copy = operator_name(str(node.target)) in {"contiguous", "reshape", "flatten"}
    return before.dtype != after.dtype or (may_copy and not before.is_contiguous())


def first_state(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Name -> values, for the buffers that the graph writes into."""
    held = {**program.constants, **program.state_dict}
    return {name: held[name] for name in written_buffers(program)}


def keep_first_state(program: ExportedProgram) -> None:
    """Give the program, in place, buffers of its own where it writes: calls of the model leave nothing in them."""
    for name, value in first_state(program).items():
        held = program.state_dict if name in program.state_dict else program.constants
        held[name] = value.detach().clone()


def _calls(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op == "call_function"]


def _word(target: Any) -> str:
    """The operator's name without the mark of its form in place."""
    return operator_name(str(target)).rstrip("_")


def _has_shared_write(graph: fx.Graph) -> bool:
    """Whether memory that an op writes into is read later under another name that was there before."""
    places = {node: place for place, node in enumerate(graph.nodes)}
    owners: dict[fx.Node, fx.Node] = {}
    sharing: dict[fx.Node, list[fx.Node]] = {}
    for node in _calls(graph):
        first = node.args[0] if node.args and isinstance(node.args[0], fx.Node) else None
        if first is not None and writes_in_place(node.target):
            others = [one for one in sharing.get(owners.get(first, first), ()) if one is not first]
            if any(places[user] > places[node] for one in others for user in one.users):
                return True
        if first is not None and _gives_alias(node, owners):
            owner = owners[node] = owners.get(first, first)
            sharing.setdefault(owner, [owner]).append(node)
    return False


def _gives_alias(node: fx.Node, owners: Mapping[fx.Node, fx.Node]) -> bool:
    """Whether a call gives memory of its first argument: also an item of a list of views, but not one of new values."""
    if node.target is operator.getitem:
        return node.args[0] in owners
    return gives_view(node.target)


def _restore_batch_norms(graph_module: fx.GraphModule) -> None:
    """Write batch norms as captured graphs have them: passes fold and fuse them in that form."""
    graph = graph_module.graph
    for node in graph.find_nodes(op="call_function", target=_NORM):
        results = list(node.users)
        if [(one.target, one.args[1:]) for one in results] != [(operator.getitem, (0,))]:
            continue
        (result,), name = results, results[0].name
        value, weight, bias, mean, variance, momentum, eps = node.args
        with graph.inserting_before(result):
            settings = (weight, bias, mean, variance, False, momentum, eps, False)
            norm = graph.call_function(torch.ops.aten.batch_norm.default, (value, *settings))
        norm.meta = {**node.meta, "val": result.meta.get("val")}
        result.replace_all_uses_with(norm)
        graph.erase_node(result)
        graph.erase_node(node)
        norm.name = name  # the signature may name it as an output
    graph_module.recompile()
