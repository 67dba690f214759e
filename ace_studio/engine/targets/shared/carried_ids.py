"""Carries op ids from a flat graph to a program that torch exports from it, and through its decompositions."""

from typing import Any

from torch import fx

from ace_studio.engine.quantize.flat_graph import OP_ID

_OURS = "ace_op_id"
"""Key of our entry in ``node.meta["custom"]``, which torch copies to what a node becomes."""


def carry_ids(old: fx.Graph, new: fx.Graph) -> None:
    """Write the op ids into metadata that torch keeps.

    What a module of the old graph does has the id of its call. Outside of such modules, tracing again keeps the order
    of calls of each operator.
    """
    inside = {str(node.target): node.meta[OP_ID] for node in old.find_nodes(op="call_module") if OP_ID in node.meta}
    waiting: dict[Any, list[str | None]] = {}
    for node in old.nodes:
        if node.op == "call_function":
            waiting.setdefault(node.target, []).append(node.meta.get(OP_ID))
    for node in new.nodes:
        if node.op != "call_function":
            continue
        paths = [str(path).partition(".")[0] for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
        module = next((path for path in paths if path in inside), None)
        ids = waiting.get(node.target, [])
        if op_id := inside[module] if module else ids.pop(0) if ids else None:
            node.meta["custom"] = {**(node.meta.get("custom") or {}), _OURS: op_id}


def carried_id(node: fx.Node) -> str:
    """The id of the op that a node computes; empty if it is not known."""
    known = node.meta.get("custom") or {}
    return str(known.get(_OURS, "")) if node.op == "call_function" else ""
