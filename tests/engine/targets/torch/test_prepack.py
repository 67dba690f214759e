"""Weights are packed for the sizes of the traced example, and other sizes stay right."""

from __future__ import annotations

import pytest
import torch
from torch import fx, nn

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.quantize.pt2e import quantize_int8
from ace_studio.engine.targets.torch import inductor
from ace_studio.engine.targets.torch.inductor import compile_graph
from ace_studio.engine.targets.torch.prepack import pack_for_traced_sizes
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.engine.torch_private.inductor import compile_frozen

TRACED = (2, 16, 9, 7)


class Convolutions(nn.Module):
    """Dense, depthwise, strided and dilated convolutions, then one over 1 x 1 and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.dense = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=2, dilation=2, groups=32)
        self.point = nn.Conv2d(32, 16, 1)
        self.squeezed = nn.Conv2d(16, 8, 1)
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[B, 16, H, W] -> [B, 4]."""
        x = self.depthwise(self.dense(x).relu()).relu()
        x = self.squeezed(self.point(x).mean((2, 3), keepdim=True))
        return self.linear(x.flatten(1))


def _flat(module, *, dynamic, sizes=TRACED):
    with torch.no_grad():
        shapes = (dict.fromkeys(dynamic, DYNAMIC),)
        return flat_graph(export_program(module, (_input(sizes),), {}, dynamic_shapes=shapes, strict=False))


def _input(sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def _compiled(graph_module, seen):
    """Compile as the target does; ``seen`` gets the sizes that every packing was given."""

    def change(made):
        count = pack_for_traced_sizes(made)
        packings = [node for node in made.graph.nodes if "prepack" in str(node.target) or "reorder" in str(node.target)]
        assert count <= len(packings)
        seen.extend(node.args[-1] for node in packings)

    return compile_frozen(graph_module, before_folding=change)[0]


def _assert_right_at(run, module, sizes, *, least_db):
    for one in sizes:
        with torch.no_grad():
            assert sqnr_db([module(_input(one))], list(run(_input(one)))) > least_db


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [(0,), (0, 2, 3)])
def test_float_convolutions_at_a_dynamic_size_are_packed_once_and_right_at_every_size(dynamic):
    module, seen = Convolutions().eval(), []
    run = _compiled(_flat(module, dynamic=dynamic), seen)
    assert list(TRACED) in seen
    assert len([sizes for sizes in seen if isinstance(sizes, list) and len(sizes) == 4]) == 4
    others = [(5, 16, 9, 7), (1, 16, 9, 7)] if dynamic == (0,) else [(1, 16, 20, 31), (3, 16, 9, 8)]
    _assert_right_at(run, module, [TRACED, *others], least_db=90)


@pytest.mark.slow
def test_int8_weights_at_a_dynamic_batch_are_packed_for_the_traced_sizes_and_right_at_every_batch():
    module, seen = Convolutions().eval(), []
    graph_module = _flat(module, dynamic=(0,))
    ids = {node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta}
    quantized, _ = quantize_int8(graph_module, static=ids, calibration=[[_input(TRACED)]], reporter=Reporter())
    with torch.no_grad():
        expected = [quantized(_input((batch, *TRACED[1:])))[0] for batch in (1, 2, 7)]
    run = _compiled(quantized, seen)
    assert list(TRACED) in seen
    assert None not in seen
    for batch, wanted in zip((1, 2, 7), expected, strict=True):
        assert sqnr_db([wanted], list(run(_input((batch, *TRACED[1:]))))) > 40


@pytest.mark.slow
def test_a_single_input_channel_is_left_to_every_call_and_right():
    module, seen = nn.Conv2d(1, 4, 3).eval(), []
    run = _compiled(_flat(module, dynamic=(0,), sizes=(2, 1, 8, 8)), seen)
    assert not seen
    _assert_right_at(run, module, [(2, 1, 8, 8), (5, 1, 8, 8)], least_db=90)


def _packing(target, *arguments, users=1, sizes=(2, 16, 9, 7)):
    """A graph with one int8 packing in front of convolutions over an input of the given sizes."""
    graph = fx.Graph()
    x, weight = graph.placeholder("x"), graph.placeholder("weight")
    x.meta["val"] = torch.empty(sizes)
    packed = graph.call_function(target, (weight, *arguments))
    for _ in range(users):
        graph.output(graph.call_function(torch.ops.onednn.qconv_pointwise.default, (x, 1.0, 0, packed)))
    return fx.GraphModule(nn.Module(), graph), packed


def test_a_packing_that_knows_its_sizes_keeps_them():
    graph_module, packed = _packing(torch.ops.onednn.qlinear_prepack, [3, 16])
    assert pack_for_traced_sizes(graph_module) == 0
    assert packed.args[-1] == [3, 16]


def test_a_packing_with_other_arguments_than_expected_is_left_alone():
    graph_module, packed = _packing(torch.ops.onednn.qlinear_prepack, None, None)
    assert pack_for_traced_sizes(graph_module) == 0
    assert packed.args[1:] == (None, None)


def test_an_empty_traced_example_gives_no_sizes():
    graph_module, packed = _packing(torch.ops.onednn.qlinear_prepack, None, sizes=(0, 16))
    assert pack_for_traced_sizes(graph_module) == 0
    assert packed.args[-1] is None


def test_a_packing_without_sizes_gets_those_of_the_traced_input():
    graph_module, packed = _packing(torch.ops.onednn.qlinear_prepack, None)
    assert pack_for_traced_sizes(graph_module) == 1
    assert packed.args[-1] == [2, 16, 9, 7]


@pytest.mark.slow
def test_the_target_packs_for_traced_sizes(monkeypatch):
    counts = []
    monkeypatch.setattr(inductor, "pack_for_traced_sizes", lambda made: counts.append(pack_for_traced_sizes(made)))
    compile_graph(_flat(Convolutions().eval(), dynamic=(0,)), threads=1, reporter=Reporter())
    assert counts == [4]
