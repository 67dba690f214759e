"""Which ops of a graph a scan watches, and what a low precision rounds at each."""

from __future__ import annotations

import torch
from torch import fx

from ace_studio.engine.ops.roles import is_product, stores_table
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.quantize.simulate import Int8Style, int8_layout, rounding_sums
from ace_studio.engine.quantize.simulate.int8_style import PASSING, Int8Layout, readers_of
from ace_studio.engine.sensitivity.local_error import WatchedOp, constant_names, operands_of
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Precision


def watched_ops(graph_module: fx.GraphModule, style: Int8Style) -> dict[str, WatchedOp]:
    """Op id -> what is rounded there if every op is at low precision that can be, in the order of the graph.

    Args:
        graph_module: That of a `FloatGraph`.
        style: What the runtime rounds around ops at int8-static.
    """
    everything = {node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta}
    layout = int8_layout(graph_module, everything, style)
    sums = {node for node in rounding_sums(graph_module, style) if node.target is not torch.ops.aten.add_.Tensor}
    constants = constant_names(graph_module)
    found = {}
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or OP_ID not in node.meta:
            continue
        if stores_table(str(node.target), Precision.INT8_WEIGHT) and node.args[0].name in constants:
            found[node.meta[OP_ID]] = WatchedOp((), table=str(node.target))
            continue
        is_product = is_weighted(str(node.target))
        operands = operands_of(node, constants) if is_product or node in sums else ()
        result = _own_result(node, layout)
        if operands or result:
            found[node.meta[OP_ID]] = WatchedOp(operands, result, follows=not is_product)
    return found


def _own_result(node: fx.Node, layout: Int8Layout) -> str:
    """The node whose range the 8-bit result of an op has; empty if only products read it, which round it anyway."""
    given = layout.results.get(node)
    if given is None or str(node.target) in PASSING:
        return ""
    readers = readers_of(given, through=PASSING)
    products = [one for one in readers if one in layout.eight_bit and is_product(str(one.target))]
    return "" if readers and products == readers else layout.values[given]
