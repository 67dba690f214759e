import torch

from ace_studio.engine.quantize.flat_graph import flat_graph
from tests.engine.quantize.graphs import op_ids, run


def test_the_flat_graph_computes_what_the_model_computes_at_any_batch(conv2d):
    graph_module = flat_graph(conv2d.exported)
    assert torch.equal(run(graph_module, conv2d.example)[0], conv2d.expected)
    assert run(graph_module, conv2d.example[:1])[0].shape == (1, 4)


def test_every_node_knows_the_op_of_the_captured_graph(conv2d):
    wanted = [node.name for node in conv2d.exported.graph.nodes if node.op == "call_function"]
    assert op_ids(flat_graph(conv2d.exported)) == wanted
