"""Op ids survive another export, and the decomposition of what was exported."""

import torch

from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.shared.carried_ids import carried_id, carry_ids
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from tests.engine.targets.conftest import captured_model


def test_every_op_is_known_after_a_norm_was_decomposed():
    captured = captured_model("conv_net")
    graph_module = flat_graph(captured.program)
    shapes = tuple(dict.fromkeys(dims, DYNAMIC) for dims in captured.dynamic_dims())
    with torch.no_grad(), hushed():
        program = export_program(
            graph_module, tuple(captured.example.tensors()), {}, dynamic_shapes=shapes, strict=False
        )
        carry_ids(graph_module.graph, program.graph)
        program = program.run_decompositions({})
    found = {carried_id(node): str(node.target) for node in program.graph.nodes}
    assert {captured.table.op_id[row] for row in captured.table.op_rows()} == found.keys() - {""}
    norms = [target for op_id, target in found.items() if op_id.startswith("batch_norm")]
    assert norms and not any("aten.batch_norm" in target for target in norms)
