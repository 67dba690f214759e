import torch
from torch import nn

from ace_studio.engine.quantize.flat_graph import flat_graph, put_state_back
from ace_studio.engine.torch_private.exporting import export_program
from tests.engine.quantize.graphs import op_ids, run


def test_the_flat_graph_computes_what_the_model_computes_at_any_batch(conv2d):
    graph_module = flat_graph(conv2d.exported)
    assert torch.equal(run(graph_module, conv2d.example)[0], conv2d.expected)
    assert run(graph_module, conv2d.example[:1])[0].shape == (1, 4)


def test_every_node_knows_the_op_of_the_captured_graph(conv2d):
    wanted = [node.name for node in conv2d.exported.graph.nodes if node.op == "call_function"]
    assert op_ids(flat_graph(conv2d.exported)) == wanted


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        self.seen[1:] += x.sum(0)
        return x + self.seen.sum()


def test_calls_leave_nothing_in_the_program_and_can_be_forgotten():
    module, x = Counts(), torch.ones(2, 1)
    program = export_program(module, (x,), {}, dynamic_shapes=None, strict=False)
    graph_module = flat_graph(program)
    first, second = (run(graph_module, x)[0] for _ in range(2))
    assert (float(first[0, 0]), float(second[0, 0])) == (5.0, 9.0)
    assert not program.state_dict["seen"].any() and not module.seen.any()
    put_state_back(graph_module, program)
    assert torch.equal(run(graph_module, x)[0], first)
