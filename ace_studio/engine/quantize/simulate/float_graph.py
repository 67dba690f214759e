"""The captured graph in float with batch norms folded: what simulations and scans start from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from torch import fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms


@dataclass(frozen=True)
class FloatGraph:
    """A captured graph in float, with batch norms folded."""

    graph_module: fx.GraphModule
    """A `flat_graph` with batch norms folded; weights are its own only where a fold changed them."""
    folded: Mapping[str, str] = field(default_factory=dict)
    """Op id of a folded batch norm -> op id of its convolution, whose result is the norm's."""


def float_graph(captured: CapturedModel) -> FloatGraph:
    """A copy of the captured graph in which every batch norm behind a convolution is folded into it.

    The targets fold them too, and a grid per tensor depends on it. The same function up to rounding.
    """
    graph_module = flat_graph(captured.program)
    everything = {node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta}
    return FloatGraph(graph_module, fold_batch_norms(graph_module, everything))


def ops_of(graph_module: fx.GraphModule) -> Iterator[tuple[str, fx.Node]]:
    """Op id and node of every op of the graph, in order."""
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and OP_ID in node.meta:
            yield node.meta[OP_ID], node
