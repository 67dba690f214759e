import itertools
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from ace_studio.engine import improve as improving
from ace_studio.engine.improve import MOST_EXAMPLES
from ace_studio.engine.improve.job import ImproveJob, NoChange, with_changed_weights
from ace_studio.engine.improve.learned_rounding import learn_rounding
from ace_studio.engine.ops.roles import WeightAxes
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.quantize import affine, fake_quantize
from ace_studio.engine.quantize.fidelity import split_examples
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import float_graph
from ace_studio.records.recipes.plan import Plan, Precision, Scheme, WeightGranularity
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import captured_of, examples_of, improved_by, seeded

LEARNING = sys.modules[learn_rounding.__module__]
LAYERS = {"conv2d": "first.weight", "conv2d_1": "second.weight", "conv2d_2": "third.weight", "linear": "head.weight"}
WEIGHT4 = Plan(default=Precision.INT4_WEIGHT)


@pytest.fixture(autouse=True)
def eight_bits(monkeypatch):
    monkeypatch.setattr(fake_quantize, "int8_weight_bits", lambda: 8)  # of this machine, and of others


def job_of(captured, plan, examples, *, seconds=1000.0, reporter=None):
    bound = bind_plan(plan, captured.table, op_problem=lambda op, precision: "")
    return ImproveJob(captured, bound, examples, RangeChoice(), reporter or Reporter(), max_seconds=seconds)


def mixed(count, width=32):
    """Examples whose values go together, as those of trained layers do."""
    mixing = torch.randn(6, width, generator=seeded(5))
    return [[torch.randn(40, 6, generator=seeded(index)) @ mixing] for index in range(count)]


def learned_by(captured, plan, examples):
    return learn_rounding(job_of(captured, plan, examples), [])


@pytest.mark.parametrize(
    "plan",
    [
        WEIGHT4,
        Plan(default=Precision.INT8_WEIGHT),
        Plan(default=Precision.INT8_STATIC),
        Plan(default=Precision.INT8_DYNAMIC, weights=WeightGranularity.PER_TENSOR),
    ],
    ids=lambda plan: plan.label,
)
def test_held_out_outputs_come_closer_than_with_the_nearest_values(block, plan):
    (report,) = improved_by(block, plan, [ImproveMethod.LEARNED_ROUNDING], mixed(8)).reports
    assert report.kept
    assert report.after_db > report.before_db + (2.0 if plan is WEIGHT4 else 0.2)


def few(count, start=0):
    return [[values[:4]] for (values,) in mixed(start + count)[start:]]


def sqnr_db_of(captured, changes, plan, examples):
    job = job_of(captured, plan, examples)
    return job.fidelity_db(changes, job.references(examples))


def test_of_few_examples_the_ones_that_judged_it_are_learned_from_too(block):
    examples, unseen = few(8), few(40, start=8)
    improved = improved_by(block, WEIGHT4, [ImproveMethod.LEARNED_ROUNDING], examples)
    assert improved.reports[0].reason.endswith("that it did not see; learned again with these")
    work, _ = split_examples(examples)
    part = learned_by(block, WEIGHT4, work)
    found = [sqnr_db_of(block, [change], WEIGHT4, unseen) for change in (part, *improved.changes)]
    assert found[1] > found[0] + 0.2, found


def test_with_many_examples_or_without_time_it_is_learned_once(block, monkeypatch):
    methods = [ImproveMethod.LEARNED_ROUNDING]
    (many,) = improved_by(block, WEIGHT4, methods, few(MOST_EXAMPLES)).reports
    ticks = itertools.count(step=50)
    monkeypatch.setattr(improving, "time", SimpleNamespace(monotonic=lambda: next(ticks)))  # s, of 120
    (slow,) = improved_by(block, WEIGHT4, methods, few(8)).reports
    assert [(one.kept, one.reason[-7:]) for one in (many, slow)] == [(True, "not see")] * 2


def test_it_is_more_than_gptq_finds_and_goes_on_from_there(block):
    alone = improved_by(block, WEIGHT4, [ImproveMethod.GPTQ], mixed(8)).reports[0]
    first, second = improved_by(block, WEIGHT4, [ImproveMethod.GPTQ, ImproveMethod.LEARNED_ROUNDING], mixed(8)).reports
    assert first == alone or first.after_db == alone.after_db
    assert second.kept
    assert second.after_db > first.after_db + 1.0


@pytest.mark.parametrize("plan", [Plan(default=Precision.INT8_STATIC), WEIGHT4], ids=lambda plan: plan.label)
def test_stored_weights_lie_on_the_grids_that_are_found_for_them(convs, plan):
    """Also those of the first convolution, whose batch norm is folded into it before it is rounded."""
    change = learned_by(convs, plan, examples_of(4, 3, 12, 12))
    assert "first.weight" in change.tensors or plan is WEIGHT4
    changed = float_graph(with_changed_weights(convs, [change])).graph_module
    before = float_graph(convs).graph_module
    job, moved = job_of(convs, plan, []), 0
    for node, old in zip(changed.graph.nodes, before.graph.nodes, strict=True):
        op_id = node.meta.get("ace_op_id", "")
        if LAYERS.get(op_id) in change.tensors:
            weight, original = (
                getattr(graph.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]).detach()
                for graph, name in ((changed, str(node.args[1].target)), (before, str(old.args[1].target)))
            )
            axes = fake_quantize.WeightAxes(output=0, is_blocked=weight.dim() == 2)
            how = {"precision": plan.default, "scheme": job.plan.scheme_of(op_id)}
            rounded = fake_quantize.round_weight(weight, axes, **how)
            torch.testing.assert_close(rounded, weight, rtol=1e-5, atol=1e-6 * float(weight.abs().max()))
            plain = fake_quantize.round_weight(original, axes, **how)
            moved += int(((rounded - plain).abs() > 1e-4 * plain.abs().max()).sum())
    assert moved > 20


@cache
def learned_matrix(precision):
    """[64, 64] of a linear layer, groups of 32 at 4 bits."""
    captured = captured_of(lambda: nn.Linear(64, 64, bias=False), 64)
    change = learned_by(captured, Plan(default=precision), mixed(4, 64))
    return captured.program.state_dict["weight"].detach(), change.tensors["weight"]


def test_onnxruntime_packs_the_learned_integers():
    quantizer = pytest.importorskip("onnxruntime.quantization.matmul_nbits_quantizer")
    before, learned = learned_matrix(Precision.INT4_WEIGHT)
    config = quantizer.DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=False, bits=4)
    packed, scales, zeros = quantizer.DefaultWeightOnlyQuantizer(config).qbits_block_quant(learned.t().numpy().copy())
    codes, zeros = (np.stack([one & 15, one >> 4], -1).reshape(64, 2, -1) for one in (packed, zeros.reshape(64, 1)))
    zeros = zeros.reshape(64, 2, 1).astype(np.float32)
    found = torch.from_numpy(((codes - zeros) * scales.reshape(64, 2, 1)).reshape(64, 64))
    torch.testing.assert_close(found, learned, rtol=1e-4, atol=1e-5)
    assert not torch.equal(before, learned)


def test_openvino_packs_the_learned_integers():
    nncf = pytest.importorskip("nncf")
    openvino = pytest.importorskip("openvino")
    _, learned = learned_matrix(Precision.INT4_WEIGHT)
    ops = openvino.opset13
    data = ops.parameter([-1, 64], np.float32)
    product = ops.matmul(data, ops.constant(learned.numpy()), transpose_a=False, transpose_b=True)
    model = openvino.Model([product], [data])
    mode = nncf.CompressWeightsMode.INT4_ASYM
    packed = nncf.compress_weights(model, mode=mode, group_size=32, ratio=1.0, all_layers=True)
    compiled = openvino.compile_model(packed, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = torch.from_numpy(next(iter(compiled(np.eye(64, dtype=np.float32)).values())).copy()).t()
    step = float(learned.abs().max()) / 8  # scales are stored in 16 bits
    torch.testing.assert_close(found, learned, rtol=2e-3, atol=2e-3 * step)


def test_pt2e_packs_the_learned_integers():
    torchao = pytest.importorskip("torchao.quantization.pt2e")
    _, learned = learned_matrix(Precision.INT8_STATIC)
    observer = torchao.PerChannelMinMaxObserver(
        ch_axis=0, dtype=torch.int8, qscheme=torch.per_channel_symmetric, quant_min=-127, quant_max=127
    )
    observer(learned)
    scale, _ = observer.calculate_qparams()
    found = (learned / scale[:, None]).round().clamp(-127, 127) * scale[:, None]
    torch.testing.assert_close(found, learned, rtol=1e-5, atol=1e-6)


def test_qdq_stores_the_learned_integers():
    utilities = pytest.importorskip("onnxruntime.quantization.quant_utils")
    types = pytest.importorskip("onnx").TensorProto
    _, learned = learned_matrix(Precision.INT8_STATIC)
    for row in learned[:8]:
        zero, scale, codes = utilities.quantize_data(row.numpy(), types.INT8, symmetric=True)[-3:]
        found = torch.from_numpy((codes.astype(np.float32) - zero) * scale)
        torch.testing.assert_close(found, row, rtol=1e-5, atol=1e-6)


class Ticks:
    """A clock on which every look takes a second."""

    def __init__(self):
        self.now = itertools.count()

    def __call__(self):
        return float(next(self.now))


def test_the_budget_is_kept(convs, monkeypatch):
    looks, moves = Ticks(), []
    monkeypatch.setattr(LEARNING, "clock", looks)
    move = LEARNING._Rounding.move
    monkeypatch.setattr(LEARNING._Rounding, "move", lambda self, size: moves.append(size) or move(self, size))
    plan, examples, convolutions = Plan(default=Precision.INT8_STATIC), examples_of(2, 3, 12, 12), 3
    outcome = learn_rounding(job_of(convs, plan, examples, seconds=1.0), [])
    assert isinstance(outcome, NoChange)
    assert "time" in outcome.reason
    learn_rounding(job_of(convs, plan, examples, seconds=40.0), [])
    assert len(moves) == convolutions  # one of each, to see how long it takes
    moves.clear()
    change = learn_rounding(job_of(convs, plan, examples, seconds=400.0), [])
    assert change.tensors
    assert convolutions * LEARNING._FEWEST <= len(moves) < 400
    moves.clear()
    learn_rounding(job_of(convs, plan, examples, seconds=1e6), [])
    assert len(moves) == convolutions * LEARNING.STEPS


def test_descent_ends_when_the_time_is_up(block, monkeypatch):
    monkeypatch.setattr(LEARNING, "clock", Ticks())
    short, long = (learn_rounding(job_of(block, WEIGHT4, mixed(2), seconds=seconds), []) for seconds in (9.0, 1e6))
    assert set(long.tensors) == {"gate.weight", "up.weight", "down.weight"}
    assert any(not torch.equal(short.tensors.get(name, value + 1), value) for name, value in long.tensors.items())


def test_it_stops_between_steps_and_tells_how_far_it_is(convs):
    told, asked = [], itertools.count()
    reporter = Reporter(told.append, is_cancelled=lambda: next(asked) > LEARNING.STEPS + 50)
    plan = Plan(default=Precision.INT8_STATIC)
    with pytest.raises(Cancelled):
        learn_rounding(job_of(convs, plan, examples_of(2, 3, 12, 12), reporter=reporter), [])
    assert [one.fraction for one in told] == [0.0, pytest.approx(0.24, abs=0.01)]
    assert "learning the rounding of conv2d" in told[0].detail


def test_a_weight_of_zeros_and_a_single_vector_are_no_problem():
    module = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 4))
    with torch.no_grad():
        module[0].weight[1] = 0.0
    captured = captured_of(lambda: module, 8)
    change = learned_by(captured, WEIGHT4, examples_of(2, 8))
    assert isinstance(change, NoChange) or all(bool(value.isfinite().all()) for value in change.tensors.values())


def test_what_is_learned_is_on_the_device_of_the_weight(monkeypatch):
    monkeypatch.setattr(affine, "_check_range", lambda low, high: None)  # looks at values, and meta tensors have none
    axes, weight = WeightAxes(output=0, is_blocked=True), torch.empty(4, 8, device="meta")
    groups = fake_quantize.weight_groups(weight, axes, precision=Precision.INT4_WEIGHT, scheme=Scheme(group_size=4))
    assert LEARNING._Rounding(groups).on_own_grids().device.type == "meta"
