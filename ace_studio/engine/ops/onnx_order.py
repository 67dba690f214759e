"""Order of the nodes of an ONNX graph: the format wants every node behind those that it reads."""

import copy
from collections.abc import Iterator
from typing import Any


def values_read(node: Any) -> Iterator[str]:
    """Values that a node reads, and outer values that the graphs inside of it read."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            inside = {value.name for value in (*graph.input, *graph.initializer)}
            inside |= {name for inner in graph.node for name in inner.output}
            yield from (name for inner in graph.node for name in values_read(inner) if name not in inside)


def sort_nodes(graph: Any) -> None:
    """Put every node behind those that it reads, in place. ONNX Runtime's quantizer appends its own at the end.

    ONNX Runtime takes any order; other readers, the checker of ``onnx`` and shape inference do not. A graph in order
    stays as it is, and so does one with a cycle, which no runtime takes.
    """
    makers = {value: at for at, node in enumerate(graph.node) for value in node.output if value}
    edges = [(makers[name], at) for at, node in enumerate(graph.node) for name in values_read(node) if name in makers]
    if all(first < last for first, last in edges):
        return
    import networkx  # noqa: PLC0415 - takes long to load, and few graphs are out of order

    order = networkx.DiGraph()
    order.add_nodes_from(range(len(graph.node)))
    order.add_edges_from(edges)
    if not networkx.is_directed_acyclic_graph(order):
        return
    nodes = [copy.deepcopy(node) for node in graph.node]
    graph.ClearField("node")
    graph.node.extend(nodes[at] for at in networkx.lexicographical_topological_sort(order))
