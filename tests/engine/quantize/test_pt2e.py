from __future__ import annotations

import pytest
import torch

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.pt2e import quantize_int8, static_problem
from tests.engine.quantize.graphs import op_ids, run, targets


def test_a_dynamic_linear_finds_its_grid_at_every_call(mlp):
    quantized, refused = quantize_int8(
        flat_graph(mlp.exported), dynamic={"linear"}, calibration=[[mlp.example]], reporter=Reporter()
    )
    assert refused == {}
    assert targets(quantized).count("aten.amax.default") == 1
    for values in (mlp.example, mlp.example * 1000.0, mlp.example.abs() + 5.0):
        with torch.no_grad():
            expected = mlp.module(values)
        assert 30 < sqnr_db([expected], list(run(quantized, values))) < 100


def test_zeros_survive_dynamic_int8(mlp):
    quantized, _ = quantize_int8(
        flat_graph(mlp.exported), dynamic={"linear"}, calibration=[[mlp.example]], reporter=Reporter()
    )
    assert bool(run(quantized, torch.zeros(2, 16))[0].isfinite().all())


def test_only_a_linear_can_be_dynamic(conv2d):
    _, refused = quantize_int8(
        flat_graph(conv2d.exported), dynamic={"conv2d"}, calibration=[[conv2d.example]], reporter=Reporter()
    )
    assert "linear" in refused["conv2d"]


@pytest.mark.parametrize("program", ["conv1d", "conv2d"])
def test_static_int8_surrounds_exactly_the_planned_ops(program, request):
    given = request.getfixturevalue(program)
    graph_module = flat_graph(given.exported)
    fold_batch_norms(graph_module, op_ids(graph_module))
    planned = {program, f"{program}_1", "linear"}
    quantized, refused = quantize_int8(graph_module, static=planned, calibration=[[given.example]], reporter=Reporter())
    around = {
        node.meta[OP_ID]
        for node in quantized.graph.nodes
        if OP_ID in node.meta and "dequantize_per_tensor" in str(getattr(node.args[0], "target", ""))
    }
    assert refused == {}
    assert around == planned
    assert 20 < sqnr_db([given.expected], list(run(quantized, given.example))) < 100
    assert run(quantized, given.example[:2])[0].shape == (2, 4)


def test_weights_of_static_int8_are_stored_as_int8_per_channel(mlp):
    quantized, _ = quantize_int8(
        flat_graph(mlp.exported), static={"linear"}, calibration=[[mlp.example]], reporter=Reporter()
    )
    kinds = {tuple(tensor.shape): tensor.dtype for tensor in quantized.state_dict().values()}
    assert kinds[32, 16] is torch.int8
    assert kinds[4, 32] is torch.float32
    assert "quantized_decomposed.dequantize_per_channel.default" in targets(quantized)


def test_an_op_without_int8_kernels_says_so(mlp):
    assert "float" in static_problem("aten.softmax.int")
    _, refused = quantize_int8(
        flat_graph(mlp.exported), static={"relu"}, calibration=[[mlp.example]], reporter=Reporter()
    )
    assert set(refused) == {"relu"}
