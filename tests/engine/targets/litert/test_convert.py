"""Nodes of an exported program get the names that the converter carries through."""

import torch

from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.targets.litert import target as convert
from ace_studio.engine.torch_private.exporting import export_program
from tests.engine.targets.conftest import captured_model


def test_every_op_names_itself_as_its_module():
    captured = captured_model("mlp")
    graph_module = flat_graph(captured.program)
    with torch.no_grad():
        program = export_program(graph_module, (torch.zeros(2, 16),), {}, dynamic_shapes=None, strict=False)
    convert._name_after_ops(graph_module.graph, program.graph)
    stacks = [node.meta["nn_module_stack"] for node in program.graph.nodes if node.op == "call_function"]
    assert stacks == [{"": ("", f"ace_op.{op_id}")} for op_id in ("linear", "relu", "linear_1")]


def test_the_second_size_differs_in_every_dynamic_dimension_and_is_not_1():
    for name in ("mlp", "conv_net", "text_model"):
        captured = captured_model(name)
        traced, other = captured.example.tensors(), convert._of_other_sizes(captured).tensors()
        dims = [
            (one.shape[dim], two.shape[dim])
            for one, two, found in zip(traced, other, captured.dynamic_dims(), strict=True)
            for dim in found
        ]
        assert dims and all(one != two and two > 1 for one, two in dims)
