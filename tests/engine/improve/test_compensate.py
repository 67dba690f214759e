import pytest
import torch
from torch import nn

from ace_studio.engine.improve.compensate import compensate, correct_biases
from ace_studio.engine.improve.job import ImproveJob
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.quantize import fake_quantize
from ace_studio.engine.quantize.affine import affine_grid, weight_grid
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import runs as lockstep
from ace_studio.records.recipes.plan import Plan, Precision, WeightGranularity
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import captured_of, examples_of, improved_by, seeded

STATIC, WEIGHT4 = Plan(default=Precision.INT8_STATIC), Plan(default=Precision.INT4_WEIGHT, group_size=0)


@pytest.fixture(autouse=True)
def eight_bits(monkeypatch):
    monkeypatch.setattr(fake_quantize, "int8_weight_bits", lambda: 8)  # of this machine, and of others


def job_of(captured, plan, examples, reporter=None):
    bound = bind_plan(plan, captured.table, op_problem=lambda op, precision: "")
    return ImproveJob(captured, bound, examples, RangeChoice(), reporter or Reporter())


def gained(captured, plan, method, examples):
    (report,) = improved_by(captured, plan, [method], examples).reports
    return report.after_db - report.before_db


def test_bias_correction_takes_the_mean_error_out(convs):
    plan = Plan(default=Precision.INT8_STATIC, weights=WeightGranularity.PER_TENSOR)
    assert gained(convs, plan, ImproveMethod.BIAS_CORRECTION, examples_of(12, 3, 12, 12)) > 1.0


def test_a_gain_helps_more_than_an_offset_alone():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        captured = captured_of(lambda: nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 8, bias=False)), 16)
    mixing = torch.randn(2, 16, generator=seeded(5))
    examples = [[torch.randn(200, 2, generator=seeded(index)) @ mixing] for index in range(8)]
    offset = gained(captured, WEIGHT4, ImproveMethod.BIAS_CORRECTION, examples)
    assert gained(captured, WEIGHT4, ImproveMethod.COMPENSATE, examples) > offset + 1.0


def test_a_channel_keeps_its_integers(convs):
    """Convolutions without a norm: a folded one is what is rounded where there is a norm."""
    examples = examples_of(4, 3, 12, 12)
    for plan, grid_of in ((STATIC, weight_grid), (WEIGHT4, affine_of)):
        change = compensate(job_of(convs, plan, examples), [])
        changed = 0
        for name in ("second.weight", "third.weight", "head.weight"):
            before, after = convs.program.state_dict[name].detach(), change.tensors[name]
            changed += not torch.equal(before, after)
            assert torch.equal(grid_of(before).quantize(before), grid_of(after).quantize(after)), name
        assert changed


def affine_of(weight):
    rows = weight.flatten(1)
    return affine_grid(rows.amin(1), rows.amax(1), bits=4, axis=0)


def test_one_scale_for_all_channels_gets_offsets_only(convs):
    plan = Plan(default=Precision.INT8_STATIC, weights=WeightGranularity.PER_TENSOR)
    job = job_of(convs, plan, examples_of(3, 3, 12, 12))
    both, offsets = compensate(job, []), correct_biases(job, [])
    assert set(both.tensors) == set(offsets.tensors) == {"norm.bias", "second.bias", "third.bias", "head.bias"}
    assert all(torch.equal(both.tensors[name], value) for name, value in offsets.tensors.items())


class UnfoldedNorm(nn.Module):
    """A norm whose channels are not the outputs of the layer before it: it stays an op of its own."""

    def __init__(self):
        super().__init__()
        self.up, self.norm, self.head = nn.Linear(10, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.up(x))))


def test_a_norm_that_is_not_folded_is_left_alone():
    captured = captured_of(UnfoldedNorm, 6, 10)
    change = compensate(job_of(captured, STATIC, examples_of(4, 6, 10)), [])
    assert set(change.tensors) == {"up.weight", "up.bias", "head.weight", "head.bias"}


def test_constant_channels_and_few_values_get_no_gain():
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    with torch.no_grad():
        module[0].weight[0], module[0].bias[0] = 0.0, 0.5  # always .5
        module[0].bias[1] = -100.0  # never passes
    captured = captured_of(lambda: module, 4)
    change = compensate(job_of(captured, STATIC, examples_of(3, 4)), [])  # 12 values each
    for name in ("0.weight", "2.weight"):
        assert torch.equal(change.tensors[name], captured.program.state_dict[name])
    assert change.tensors["0.bias"][1] == -100.0


def test_as_many_examples_as_fit_into_memory(convs, monkeypatch):
    examples = examples_of(6, 3, 12, 12)
    graph = job_of(convs, STATIC, examples).simulator([]).graph_module
    assert len(lockstep.fitting_examples(graph, examples)) == 6
    monkeypatch.setattr(lockstep, "LIVE_BYTES", 4 * 2 * (4 * 8 * 10 * 10 * 4 + 4 * 8 * 8 * 8 * 4))
    assert 1 < len(lockstep.fitting_examples(graph, examples)) < 6
    monkeypatch.setattr(lockstep, "LIVE_BYTES", 1)
    assert len(lockstep.fitting_examples(graph, examples)) == 1
    assert compensate(job_of(convs, STATIC, examples), []).tensors


def test_it_stops_between_ops(convs):
    asked = iter([False] * 2 + [True] * 100)
    with pytest.raises(Cancelled):
        compensate(job_of(convs, STATIC, examples_of(3, 3, 12, 12), Reporter(is_cancelled=lambda: next(asked))), [])


def test_later_ops_see_what_earlier_ones_give(convs):
    """So the mean error is gone at the very end, not only of each op on float inputs."""
    job = job_of(convs, WEIGHT4, examples_of(4, 3, 12, 12))
    wanted = torch.cat([outputs[0] for outputs in job.references(job.work)])
    errors = []
    for changes in ([], [compensate(job, [])]):
        simulator = job.simulator(changes)
        given = torch.cat([simulator.outputs(job.plan, example)[0] for example in job.work])
        errors.append(float((given - wanted).mean(0).abs().max()))
    assert errors[1] < 1e-4 * errors[0]
