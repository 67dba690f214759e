from __future__ import annotations

import pytest
import torch
from torch import nn

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.observers import UNSEEN
from ace_studio.engine.quantize.pt2e import quantize_int8, static_problem
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.records.recipes.plan import Precision
from tests.engine.captured import captured_of
from tests.engine.quantize.graphs import op_ids, run, targets
from tests.engine.targets.conftest import bound, make_job


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


class WritesIntoItsInput(nn.Module):
    """A linear layer on an input that forward changes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x.add_(1))


@pytest.mark.parametrize("precision", ["static", "dynamic"])
def test_the_examples_stay_as_they_are_if_the_graph_writes_into_them(precision):
    example = torch.randn(2, 4)
    before = example.clone()
    program = torch.export.export(WritesIntoItsInput().eval(), (example,))
    quantize_int8(flat_graph(program), **{precision: {"linear"}}, calibration=[[example]], reporter=Reporter())
    assert torch.equal(example, before)


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


class Residual(nn.Module):
    """Two convolutions, an addition of their input or of a third convolution, and a head."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.kind = kind
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.first = nn.Conv2d(16, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.shortcut = nn.Conv2d(16, 16, 1)
        self.head = nn.Conv2d(16, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[B, 3, H, W] -> [B, 4, H, W]."""
        x = self.stem(x).relu()
        y = self.second(self.first(x).relu())
        if self.kind == "shortcut":
            return self.head((self.shortcut(x) + y).relu())
        if self.kind == "read later":
            return self.head((x + y).relu()) + self.head(x)
        if self.kind == "no relation":
            return self.head((y + x.sigmoid()).relu())
        if self.kind == "twice":
            return self.head((y + y).relu())
        if self.kind == "smaller":
            return self.head((y + x.mean((2, 3), keepdim=True)).relu())
        return self.head((x + y).relu())


def _input(batch=2):
    return torch.randn((batch, 3, 8, 8), generator=torch.Generator().manual_seed(batch))


def _quantized(kind):
    module = Residual(kind).eval()
    with torch.no_grad():
        program = export_program(module, (_input(),), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
    graph_module = flat_graph(program)
    ids = {node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta}
    return module, *quantize_int8(graph_module, static=ids, calibration=[[_input()]], reporter=Reporter())


def _inputs_of_addition(graph_module):
    node = next(node for node in graph_module.graph.nodes if str(node.target) == "aten.add.Tensor")
    return sorted("dequantize" in str(one.target) for one in node.all_input_nodes)


@pytest.mark.parametrize("kind", ["identity", "shortcut"])
def test_what_is_added_to_an_int8_convolution_gets_a_grid_and_the_convolution_s_result_none(kind):
    module, quantized, refused = _quantized(kind)
    assert "add" not in refused
    assert _inputs_of_addition(quantized) == [False, True]
    with torch.no_grad():
        assert sqnr_db([module(_input(5))], list(quantized(_input(5)))) > 25


def test_a_shared_value_has_one_grid_for_the_convolution_and_the_addition():
    _, quantized, _ = _quantized("identity")
    added = next(node for node in quantized.graph.nodes if str(node.target) == "aten.add.Tensor").all_input_nodes
    grid = next(one for one in added if "dequantize" in str(one.target)).args[0]
    readers = {str(reader.target) for dequantized in grid.users for reader in dequantized.users}
    assert readers == {"aten.add.Tensor", "aten.conv2d.default"}


@pytest.mark.parametrize("kind", ["read later", "no relation", "twice", "smaller"])
def test_an_addition_that_the_kernel_cannot_do_in_place_stays_in_float_with_a_reason(kind):
    _, quantized, refused = _quantized(kind)
    assert "in place" in refused["add"]
    inputs = next(node for node in quantized.graph.nodes if str(node.target) == "aten.add.Tensor").all_input_nodes
    assert not any("dequantize" in str(one.target) for one in inputs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["identity", "shortcut"])
def test_inductor_does_the_addition_in_the_int8_kernel_and_says_so(kind, tmp_path):
    captured = captured_of(Residual(kind).eval(), *map(_input, (2, 3)))
    plan = bound("inductor", captured, Precision.INT8_STATIC)
    lowered = TARGETS["inductor"].lower(make_job(captured, plan, tmp_path))
    actual = {one.op_id: one for one in lowered.read_back()}
    assert "qconv2d_pointwise.binary" in str(actual["add"])
    assert actual["add"].actual == "fused"
    assert {actual[op].actual for op in actual if op.startswith("conv2d")} == {Precision.INT8_STATIC}
    for batch in (1, 2, 5):
        with torch.no_grad():
            assert sqnr_db([captured.module(_input(batch))], [lowered(_input(batch))]) > 25


class Parts(nn.Module):
    """The first four rows and the rest, which may be empty, in layers of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest = nn.Linear(16, 32), nn.Linear(16, 32)

    def forward(self, x):
        return torch.cat([self.first(x[:4]), self.rest(x[4:]).relu()])


@pytest.mark.parametrize("calibration", ["empty", "nan"])
def test_an_op_without_a_range_stays_float_and_the_others_do_not(calibration):
    torch.manual_seed(0)
    module, x = Parts().eval(), torch.randn(7, 16)
    program = export_program(module, (x,), {}, dynamic_shapes={"x": {0: DYNAMIC}}, strict=False)
    seen = x[:4] if calibration == "empty" else torch.cat([x[:4], torch.full((3, 16), torch.nan)])
    planned = {"linear", "linear_1"}
    quantized, refused = quantize_int8(flat_graph(program), static=planned, calibration=[[seen]], reporter=Reporter())
    assert refused == {"linear_1": UNSEEN}
    fresh = torch.randn(9, 16).clamp(-1, 1)
    found, expected = run(quantized, fresh)[0], module(fresh)
    torch.testing.assert_close(found[4:], expected[4:])
    assert 25 < sqnr_db([expected[:4]], [found[:4]]) < 100
