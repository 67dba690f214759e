"""Passes over the captured graph: what each claims to do, and that it leaves the rest alone."""

from __future__ import annotations

import pytest
import torch
from torch import fx, nn

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.casts import cast_problem, insert_casts
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.pt2e import quantize_int8, static_problem
from ace_studio.engine.torch_private.exporting import export_program
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Observer


def _run(graph_module, *inputs):
    with torch.no_grad():
        return graph_module(*inputs)


def _dtypes(graph_module, *inputs):
    """Op id -> element type that the op really gives."""
    found = {}

    class Recorder(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            if OP_ID in n.meta and isinstance(result, torch.Tensor):
                found[n.meta[OP_ID]] = result.dtype
            return result

    with torch.no_grad():
        Recorder(graph_module).run(*inputs)
    return found


def _casts(graph_module):
    return [node for node in graph_module.graph.nodes if node.target is torch.ops.aten.to.dtype]


def _targets(graph_module):
    return [str(node.target) for node in graph_module.graph.nodes if node.op == "call_function"]


def _op_ids(graph_module):
    return [node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta]


# --- the flat form ---


def test_the_flat_graph_computes_what_the_model_computes_at_any_batch(conv2d):
    graph_module = flat_graph(conv2d.exported)
    assert torch.equal(_run(graph_module, conv2d.example)[0], conv2d.expected)
    assert _run(graph_module, conv2d.example[:1])[0].shape == (1, 4)


def test_every_node_knows_the_op_of_the_captured_graph(conv2d):
    wanted = [node.name for node in conv2d.exported.graph.nodes if node.op == "call_function"]
    assert _op_ids(flat_graph(conv2d.exported)) == wanted


# --- casts ---


def test_planned_ops_compute_in_bf16_and_the_others_do_not(mlp):
    graph_module = flat_graph(mlp.exported)
    report = insert_casts(graph_module, {"linear": Precision.BF16})
    found = _dtypes(graph_module, mlp.example)
    assert report.lowered == {"linear": Precision.BF16}
    assert found["linear"] is torch.bfloat16
    assert found["relu"] is found["linear_1"] is torch.float32


def test_outputs_keep_their_type_and_stay_close(mlp):
    graph_module = flat_graph(mlp.exported)
    insert_casts(graph_module, dict.fromkeys(_op_ids(graph_module), Precision.BF16))
    (result,) = _run(graph_module, mlp.example)
    assert result.dtype is torch.float32
    assert 30 < sqnr_db([mlp.expected], [result]) < 100


def test_neighbouring_casts_cancel(mlp):
    graph_module = flat_graph(mlp.exported)
    insert_casts(graph_module, dict.fromkeys(_op_ids(graph_module), Precision.BF16))
    assert len(_casts(graph_module)) == 2


def test_weights_of_lowered_ops_are_stored_in_16_bits_only(mlp):
    graph_module = flat_graph(mlp.exported)
    insert_casts(graph_module, {"linear": Precision.FP16})
    stored = {name: tensor.dtype for name, tensor in graph_module.state_dict().items()}
    assert sorted(str(dtype) for dtype in stored.values()) == ["torch.float16"] * 2 + ["torch.float32"] * 2


def test_the_model_s_own_weights_are_not_touched(mlp):
    before = {name: tensor.clone() for name, tensor in mlp.module.state_dict().items()}
    insert_casts(flat_graph(mlp.exported), {"linear": Precision.BF16})
    assert all(torch.equal(tensor, before[name]) for name, tensor in mlp.module.state_dict().items())


def test_dynamic_sizes_stay_dynamic(conv1d):
    graph_module = flat_graph(conv1d.exported)
    insert_casts(graph_module, dict.fromkeys(_op_ids(graph_module), Precision.BF16))
    assert _run(graph_module, conv1d.example[:3])[0].shape == (3, 4)


def test_an_op_that_sums_up_is_refused_with_a_reason(conv2d):
    graph_module = flat_graph(conv2d.exported)
    report = insert_casts(graph_module, {"mean": Precision.BF16})
    assert "fp32" in report.refused["mean"]
    assert cast_problem("aten.softmax.int")
    assert not cast_problem("aten.conv2d.default")
    assert not _casts(graph_module)


# --- batch norms ---


@pytest.mark.parametrize("program", ["conv1d", "conv2d"])
def test_a_folded_batch_norm_changes_nothing_but_the_graph(program, request):
    given = request.getfixturevalue(program)
    graph_module = flat_graph(given.exported)
    assert fold_batch_norms(graph_module, _op_ids(graph_module)) == {"batch_norm": program}
    assert "aten.batch_norm.default" not in _targets(graph_module)
    assert sqnr_db([given.expected], list(_run(graph_module, given.example))) > 100


def test_a_convolution_that_may_not_change_keeps_its_batch_norm(conv2d):
    graph_module = flat_graph(conv2d.exported)
    assert fold_batch_norms(graph_module, {"conv2d_1"}) == {}
    assert "aten.batch_norm.default" in _targets(graph_module)


# --- int8 ---


def test_a_dynamic_linear_finds_its_grid_at_every_call(mlp):
    quantized, refused = quantize_int8(
        flat_graph(mlp.exported), dynamic={"linear"}, calibration=[[mlp.example]], reporter=Reporter()
    )
    assert refused == {}
    assert _targets(quantized).count("aten.amax.default") == 1
    for values in (mlp.example, mlp.example * 1000.0, mlp.example.abs() + 5.0):
        with torch.no_grad():
            expected = mlp.module(values)
        assert 30 < sqnr_db([expected], list(_run(quantized, values))) < 100


def test_zeros_survive_dynamic_int8(mlp):
    quantized, _ = quantize_int8(
        flat_graph(mlp.exported), dynamic={"linear"}, calibration=[[mlp.example]], reporter=Reporter()
    )
    assert bool(_run(quantized, torch.zeros(2, 16))[0].isfinite().all())


def test_only_a_linear_can_be_dynamic(conv2d):
    _, refused = quantize_int8(
        flat_graph(conv2d.exported), dynamic={"conv2d"}, calibration=[[conv2d.example]], reporter=Reporter()
    )
    assert "linear" in refused["conv2d"]


@pytest.mark.parametrize("program", ["conv1d", "conv2d"])
def test_static_int8_surrounds_exactly_the_planned_ops(program, request):
    given = request.getfixturevalue(program)
    graph_module = flat_graph(given.exported)
    fold_batch_norms(graph_module, _op_ids(graph_module))
    planned = {program, f"{program}_1", "linear"}
    quantized, refused = quantize_int8(graph_module, static=planned, calibration=[[given.example]], reporter=Reporter())
    around = {
        node.meta[OP_ID]
        for node in quantized.graph.nodes
        if OP_ID in node.meta and "dequantize_per_tensor" in str(getattr(node.args[0], "target", ""))
    }
    assert refused == {}
    assert around == planned
    assert 20 < sqnr_db([given.expected], list(_run(quantized, given.example))) < 100
    assert _run(quantized, given.example[:2])[0].shape == (2, 4)


def test_weights_of_static_int8_are_stored_as_int8_per_channel(mlp):
    quantized, _ = quantize_int8(
        flat_graph(mlp.exported), static={"linear"}, calibration=[[mlp.example]], reporter=Reporter()
    )
    kinds = {tuple(tensor.shape): tensor.dtype for tensor in quantized.state_dict().values()}
    assert kinds[32, 16] is torch.int8
    assert kinds[4, 32] is torch.float32
    assert "quantized_decomposed.dequantize_per_channel.default" in _targets(quantized)


def test_an_op_without_int8_kernels_says_so(mlp):
    assert "float" in static_problem("aten.softmax.int")
    _, refused = quantize_int8(
        flat_graph(mlp.exported), static={"relu"}, calibration=[[mlp.example]], reporter=Reporter()
    )
    assert set(refused) == {"relu"}


# --- calibration ---


def test_ranges_hold_every_value_of_every_example(mlp):
    graph_module = flat_graph(mlp.exported)
    examples = [[torch.full((2, 16), value)] for value in (-3.0, 5.0)]
    ranges = observe_ranges(graph_module, examples)
    (name, *_) = ranges
    assert (ranges[name].low, ranges[name].high, ranges[name].examples) == (-3.0, 5.0, 2)
    assert ranges["relu"].low == 0.0
    assert set(observe_ranges(graph_module, examples, names={"relu"})) == {"relu"}


def test_a_percentile_cuts_outliers_off(mlp):
    graph_module = flat_graph(mlp.exported)
    values = torch.rand(64, 16, generator=torch.Generator().manual_seed(0))
    values[0, 0] = 1000.0
    (name, *_) = observe_ranges(graph_module, [[values]])
    assert observe_ranges(graph_module, [[values]])[name].high == 1000.0
    choice = RangeChoice(Observer.PERCENTILE, percentile=99.0)
    assert 0.9 < observe_ranges(graph_module, [[values]], choice=choice)[name].high < 1.1


def test_values_that_are_not_finite_are_named(mlp):
    broken = torch.zeros(2, 16)
    broken[0, 0] = float("nan")
    with pytest.raises(ValueError, match="not finite in example 1"):
        observe_ranges(flat_graph(mlp.exported), [[broken]])


def _exported(module, *inputs):
    return export_program(module.eval(), inputs, {}, dynamic_shapes=None, strict=False)


class MaskedScores(nn.Module):
    """Scores with minus infinity where x is large, all of it in some rows; x [n, 4]."""

    def __init__(self, *, is_cleaned):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)
        self.is_cleaned = is_cleaned

    def forward(self, x):
        shares = self.first(x).masked_fill(x > 0.5, float("-inf")).softmax(-1)
        return self.second(torch.nan_to_num(shares) if self.is_cleaned else shares)


@pytest.mark.parametrize("is_cleaned", [True, False])
def test_a_mask_of_minus_infinity_has_no_range(is_cleaned):
    x = torch.tensor([[0.0, 1.0, 0.2, 3.0], [0.1, 0.2, 0.3, 0.4]])
    ranges = observe_ranges(flat_graph(_exported(MaskedScores(is_cleaned=is_cleaned), x)), [[x]])
    assert "masked_fill" not in ranges
    assert {"x", "linear", "softmax", "linear_1"} <= set(ranges)


def test_nan_of_a_row_that_is_masked_whole_is_named_only_where_a_product_reads_it():
    x = torch.ones(2, 4)
    assert "linear_1" in observe_ranges(flat_graph(_exported(MaskedScores(is_cleaned=True), x)), [[x]])
    with pytest.raises(ValueError, match="softmax is not finite in example 1, and linear_1 multiplies by it"):
        observe_ranges(flat_graph(_exported(MaskedScores(is_cleaned=False), x)), [[x]])
