"""Running a rewritten graph, and what its nodes are."""

import torch

from ace_studio.engine.quantize.flat_graph import OP_ID


def run(graph_module, *inputs):
    with torch.no_grad():
        return graph_module(*inputs)


def targets(graph_module):
    return [str(node.target) for node in graph_module.graph.nodes if node.op == "call_function"]


def op_ids(graph_module):
    return [node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta]
