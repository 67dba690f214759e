"""Improvements: each helps where it should, leaves the float model alone if it says so, is kept only if it helps."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.improve import METHODS, improve, with_changes
from ace_studio.engine.improve.equalize import find_pairs
from ace_studio.engine.improve.gptq import gptq, round_rows
from ace_studio.engine.improve.job import ImproveJob
from ace_studio.engine.improve.norm_sites import find_norm_sites
from ace_studio.engine.improve.weights import WeightEditor
from ace_studio.engine.ops.roles import WeightAxes
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fake_quantize import round_weight
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import Simulator, float_graph
from ace_studio.records.recipes.plan import Plan, Precision, Scheme, WeightGranularity
from ace_studio.records.recipes.recipe import CaptureChoice, ImproveMethod, Recipe


def _generator(seed):
    return torch.Generator().manual_seed(seed)


def _captured(make, *shape):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = make().eval()
    loaded = LoadedModel(module=module, source=Path(), sha256="")
    examples = [Example.of(torch.randn(n, *shape, generator=_generator(n))) for n in (2, 3)]
    recipe = Recipe(capture=CaptureChoice(rungs=("export",)))
    return capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=Reporter())[0]


def _examples(count, *shape):
    return [[torch.randn(4, *shape, generator=_generator(100 + index))] for index in range(count)]


def _improved(captured, plan, methods, examples):
    bound = bind_plan(plan, captured.table, op_problem=lambda op, precision: "")
    return improve(captured, bound, methods, examples, ranges=RangeChoice(), reporter=Reporter())


def _outputs(captured, example):
    return Simulator(float_graph(captured)).float_outputs(example)[0]


class Convs(nn.Module):
    """Convolutions with a norm and ReLU between them, channels of very different size; the last is depthwise."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)
        self.second, self.third = nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3, groups=8)
        self.head = nn.Linear(8, 5)
        with torch.no_grad():
            sizes = torch.logspace(-1.5, 1.5, 8)
            self.norm.weight.copy_(sizes)
            self.norm.bias.copy_(sizes / 3)
            self.second.weight.div_(sizes[None, :, None, None])

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = torch.relu(self.third(torch.relu(self.second(x))))
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    """A norm with outlier channels in front of two linear layers, as in an encoder."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.gate = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(32, 64)
        self.down = nn.Linear(64, 16)
        with torch.no_grad():
            self.norm.weight[3], self.norm.weight[17] = 60.0, 40.0
            for layer in (self.up, self.gate):
                layer.weight[:, 3] /= 60.0
                layer.weight[:, 17] /= 40.0

    def forward(self, x):
        y = self.norm(x)
        return self.down(torch.nn.functional.gelu(self.up(y)) * self.gate(y))


@pytest.fixture(scope="module")
def convs():
    return _captured(Convs, 3, 12, 12)


@pytest.fixture(scope="module")
def block():
    return _captured(Block, 32)


def test_equalisation_finds_pairs_through_norms_and_depthwise_layers(convs):
    pairs = find_pairs(WeightEditor(convs))
    assert [(pair.first.op_id, pair.second.op_id) for pair in pairs] == [
        ("conv2d", "conv2d_1"),
        ("conv2d_1", "conv2d_2"),
    ]


@pytest.mark.parametrize("granularity", list(WeightGranularity))
def test_equalisation_helps_uneven_channels_and_leaves_the_float_model_alone(convs, granularity):
    plan = Plan(default=Precision.INT8_STATIC, weights=granularity)
    examples = _examples(6, 3, 12, 12)
    found = _improved(convs, plan, [ImproveMethod.EQUALIZE], examples)
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 3.0
    changed = with_changes(convs, found.changes)
    torch.testing.assert_close(_outputs(changed, examples[0]), _outputs(convs, examples[0]), rtol=1e-3, atol=1e-4)
    assert changed.module is convs.module


class NormBehindReLU(nn.Module):
    """A batch norm that no convolution can take in, padding, pooling, and a convolution."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(2, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3)
        with torch.no_grad():
            sizes = torch.logspace(-1.5, 1.5, 8)
            self.norm.weight.copy_(sizes)
            self.norm.bias.copy_(sizes / 2)
            self.second.weight.div_(sizes[None, :, None, None])

    def forward(self, x):
        x = nn.functional.pad(self.norm(torch.relu(self.first(x))), (1, 1, 1, 1))
        return self.second(nn.functional.max_pool2d(x, 2)).mean((2, 3))


def test_equalisation_works_from_a_norm_that_stands_alone():
    captured = _captured(NormBehindReLU, 2, 12, 12)
    examples = _examples(5, 2, 12, 12)
    found = _improved(captured, Plan(default=Precision.INT8_STATIC), [ImproveMethod.EQUALIZE], examples)
    assert found.reports[0].kept
    assert found.reports[0].after_db > found.reports[0].before_db + 3.0
    changed = with_changes(captured, found.changes)
    torch.testing.assert_close(_outputs(changed, examples[0]), _outputs(captured, examples[0]), rtol=1e-3, atol=1e-4)


def test_equalisation_works_where_nothing_stands_between_a_norm_and_the_next_layer():
    make = lambda: nn.Sequential(nn.Conv2d(2, 8, 1), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 1), nn.Flatten())  # noqa: E731
    captured = _captured(make, 2, 5, 5)
    plan = Plan(default=Precision.INT8_STATIC)
    (report,) = _improved(captured, plan, [ImproveMethod.EQUALIZE], _examples(5, 2, 5, 5)).reports
    assert report.after_db is not None


def test_smoothquant_helps_outlier_channels_and_leaves_the_float_model_alone(block):
    assert [len(site.readers) for site in find_norm_sites(WeightEditor(block))] == [2]
    examples = _examples(6, 32)
    found = _improved(block, Plan(default=Precision.INT8_STATIC), [ImproveMethod.SMOOTHQUANT], examples)
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 6.0
    changed = with_changes(block, found.changes)
    torch.testing.assert_close(_outputs(changed, examples[0]), _outputs(block, examples[0]), rtol=1e-3, atol=1e-4)


def test_awq_helps_outlier_channels_at_four_bits(block):
    found = _improved(block, Plan(default=Precision.INT4_WEIGHT, group_size=0), [ImproveMethod.AWQ], _examples(6, 32))
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 2.0


def test_gptq_helps_at_four_bits_where_inputs_go_together(block):
    mixing = torch.randn(6, 32, generator=_generator(5))
    examples = [[torch.randn(40, 6, generator=_generator(index)) @ mixing] for index in range(8)]
    found = _improved(block, Plan(default=Precision.INT4_WEIGHT), [ImproveMethod.GPTQ], examples)
    (report,) = found.reports
    assert report.kept
    assert report.ops == 3


def test_gptq_gives_the_same_however_many_layers_it_looks_at_in_one_pass(block, monkeypatch):
    plan = bind_plan(Plan(default=Precision.INT4_WEIGHT), block.table, op_problem=lambda op, precision: "")
    job = ImproveJob(block, plan, _examples(3, 32), RangeChoice(), Reporter())
    together = gptq(job, [])
    monkeypatch.setattr(sys.modules[gptq.__module__], "PRODUCT_BYTES", 1)
    apart = gptq(job, [])
    assert set(together.tensors) == {"up.weight", "gate.weight", "down.weight"}
    for name, value in together.tensors.items():
        torch.testing.assert_close(apart.tensors[name], value)


@pytest.mark.parametrize(("bits", "precision"), [(4, Precision.INT4_WEIGHT), (8, Precision.INT8_WEIGHT)])
@pytest.mark.parametrize("group_size", [0, 16, 32])
def test_weights_of_gptq_lie_on_the_grid_that_a_target_finds_for_them(bits, precision, group_size):
    rows = torch.randn(12, 40, generator=_generator(1))
    inputs = torch.randn(200, 40, generator=_generator(2)) @ torch.randn(40, 40, generator=_generator(3))
    scheme, axes = Scheme(group_size=group_size), WeightAxes(output=0, is_blocked=True)
    rounded = round_rows(rows, (inputs.t() @ inputs).double(), bits=bits, group_size=group_size)
    again = round_weight(rounded, axes, precision=precision, scheme=scheme)
    torch.testing.assert_close(again, rounded, rtol=1e-5, atol=1e-6)
    plain = round_weight(rows, axes, precision=precision, scheme=scheme)
    error = [float((inputs @ (one - rows).t()).square().sum()) for one in (rounded, plain)]
    assert error[0] < 0.8 * error[1]


def test_bias_correction_takes_the_mean_error_out(convs):
    plan = Plan(default=Precision.INT8_STATIC, weights=WeightGranularity.PER_TENSOR)
    found = _improved(convs, plan, [ImproveMethod.BIAS_CORRECTION], _examples(12, 3, 12, 12))
    (report,) = found.reports
    assert report.kept
    assert report.after_db > report.before_db + 1.0


def test_changes_for_an_op_that_stays_in_float_are_left_out(block):
    found = _improved(block, Plan(default=Precision.INT4_WEIGHT), [ImproveMethod.GPTQ], _examples(4, 32))
    assert found.changes
    assert with_changes(block, found.changes, is_low=lambda op_id: False) is block
    one = with_changes(block, found.changes, is_low=lambda op_id: op_id == "linear")
    before, after = (dict(each.program.state_dict) for each in (block, one))
    assert {name for name in before if not torch.equal(before[name], after[name])} == {"up.weight"}


@pytest.mark.parametrize("method", list(ImproveMethod))
def test_every_method_says_why_it_was_left(method):
    module = _captured(lambda: nn.Sequential(nn.Tanh(), nn.Linear(4, 3, bias=False)), 4)
    plan = Plan(default=Precision.INT8_STATIC)
    (report,) = _improved(module, plan, [method], _examples(3, 4)).reports
    assert not report.kept
    assert report.reason
    (report,) = _improved(module, plan, [method], _examples(1, 4)).reports
    assert "two calibration examples" in report.reason
    (report,) = _improved(module, Plan(default=Precision.BF16), [method], _examples(3, 4)).reports
    assert "nothing is rounded" in report.reason


def test_the_registry_has_a_row_for_every_word():
    assert set(METHODS) == set(ImproveMethod)


def test_the_captured_weights_and_the_module_stay_as_they_were(block):
    before = {name: value.clone() for name, value in block.module.state_dict().items()}
    _improved(block, Plan(default=Precision.INT4_WEIGHT), [ImproveMethod.AWQ, ImproveMethod.GPTQ], _examples(4, 32))
    assert all(torch.equal(value, before[name]) for name, value in block.module.state_dict().items())
    assert all(torch.equal(value, before[name]) for name, value in block.program.state_dict.items() if name in before)


class MaskedBlock(Block):
    """The block with scores behind it of which some are given as minus infinity."""

    def forward(self, x):
        scores = super().forward(x)
        return scores.masked_fill(x[:, :16] > 1.0, float("-inf"))


def test_methods_are_judged_by_the_finite_scores_of_a_masked_model():
    captured = _captured(MaskedBlock, 32)
    plan = Plan(default=Precision.INT8_STATIC)
    methods = (ImproveMethod.SMOOTHQUANT, ImproveMethod.BIAS_CORRECTION)
    improved = _improved(captured, plan, methods, _examples(4, 32))
    smooth, _ = improved.reports
    assert smooth.kept, smooth
    assert smooth.after_db > smooth.before_db + 3.0
