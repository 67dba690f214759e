"""Simulated plans of a search, close to what OpenVINO's builds show, and what is expected of builds by them."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import DataSources, Example, LoadedModel
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.search.evaluation import PlanEvaluator
from ace_studio.engine.pipeline.compress.search.simulated import Expectations, PlanSimulator, with_one_float
from ace_studio.engine.pipeline.compress.search.variants import SearchVariant
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.simulate import NNCF, READS, float_graph
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.torch_private.exporting import export_program
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import Goal, ImproveMethod, Recipe
from tests.engine.bound_plans import bound_at

OPENVINO = TARGETS["openvino"]
INT8, BF16, FP32 = Precision.INT8_STATIC, Precision.BF16, Precision.FP32


class Residual(nn.Module):
    """Convolutions around a sum, as in ResNets."""

    def __init__(self):
        super().__init__()
        self.stem, self.first, self.second = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 1), nn.Conv2d(16, 16, 1)
        self.head = nn.Linear(16, 64)  # many outputs: the rounding of few weights is a matter of luck

    def forward(self, x):
        y = torch.relu(self.stem(x))
        y = torch.relu(y + self.second(torch.relu(self.first(y))))
        return self.head(y.mean((2, 3)))


def _pictures(count, seed):
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randn(2, 3, 12, 12, generator=generator),) for _ in range(count)]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Residual().eval()
    folder = tmp_path_factory.mktemp("residual")
    data = DataSources(calibration=lambda: _pictures(6, seed=1))
    loaded = LoadedModel(module=module, source=folder, sha256="", data=data)
    recipe = Recipe(plan=Plan(default=INT8), goal=Goal(min_sqnr_db=30.0))
    examples = [Example(call) for call in _pictures(3, seed=2)]
    with torch.no_grad():
        captured, report = capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=Reporter())
        yield CompressionJob.of(loaded, captured, report, recipe=recipe, output=folder, reporter=Reporter())


def _ops(captured, what):
    table = captured.table
    return [table.op_id[row] for row in table.op_rows() if what in table.op[row]]


@pytest.mark.skipif(not OPENVINO.available().ok, reason="OpenVINO is not installed")
@pytest.mark.parametrize("kept", [(), (1,), (0, 2)])
def test_a_simulated_plan_has_about_the_fidelity_of_its_build(job, kept):
    convolutions = _ops(job.captured, "conv")
    rules = tuple(PlanRule(match=f"id:{convolutions[at]}", precision=FP32) for at in kept)
    plan = Plan(default=INT8, rules=rules)
    with torch.no_grad():
        built = PlanEvaluator(job).variant(SearchVariant(OPENVINO, plan))
        simulated = PlanSimulator(job).fidelity_db(SearchVariant(OPENVINO, Plan(default=INT8)), plan)
    assert simulated == pytest.approx(built.fidelity, abs=3.0)


def test_what_cannot_be_simulated_is_not_tried_again():
    asked = []

    def calibration():
        asked.append(1)
        raise ValueError("no such op")

    captured = SimpleNamespace(torch_graph=SimpleNamespace(), table=None, device="cpu")
    job = SimpleNamespace(captured=captured, reporter=Reporter(), improvements=SimpleNamespace(capture_for=calibration))
    simulator = PlanSimulator(job)
    variant = SimpleNamespace(target=SimpleNamespace(label="t"), methods=(), plan=Plan())
    simulator._simulated = lambda *_: calibration()
    assert simulator.fidelity_db(variant, Plan()) is None
    assert simulator.fidelity_db(variant, Plan()) is None
    assert len(asked) == 1


def test_where_all_floats_have_one_type_what_is_not_low_has_it(job):
    captured = job.captured
    stem, first, second = _ops(captured, "conv")
    (add,) = _ops(captured, "add")
    graph = float_graph(captured)
    everything = [captured.table.op_id[row] for row in captured.table.op_rows()]

    def computed(**changed):
        asked = dict.fromkeys(everything, INT8) | changed
        return with_one_float(bound_at(Plan(default=INT8), asked), graph, READS).assigned

    all_low = computed(**dict.fromkeys(_ops(captured, "mean"), FP32))
    assert {all_low[one] for one in (stem, first, second, add)} == {INT8}
    assert {all_low[one] for one in _ops(captured, "mean")} == {BF16}
    table = dict(zip(captured.table.op_id, captured.table.op, strict=True))
    mixed = computed(**{second: BF16})
    assert {op_id for op_id, one in mixed.items() if one is INT8} == {
        one for one in everything if is_weighted(table[one]) and one != second
    }


def test_a_small_last_convolution_has_that_type_too():
    module = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.Conv2d(16, 1, 1)).eval()
    x = torch.randn(1, 3, 8, 8)
    exported = export_program(module, (x,), {}, dynamic_shapes=None, strict=False)
    graph = float_graph(SimpleNamespace(program=exported))
    asked = {"conv2d": BF16, "relu": INT8, "conv2d_1": INT8, "conv2d_2": INT8}
    computed = with_one_float(bound_at(Plan(default=INT8), asked), graph, NNCF).assigned
    assert computed == {"conv2d": BF16, "relu": BF16, "conv2d_1": INT8, "conv2d_2": BF16}


COMPENSATED = (ImproveMethod.COMPENSATE,)
SIMULATED = {
    (0, 0, 0): {COMPENSATED: 30.0, (): 20.0},
    (0, 0, 1): {COMPENSATED: 32.0, (): 31.5},
    (0, 1, 1): {COMPENSATED: 33.0, (): 33.5},
    (1, 1, 1): {COMPENSATED: 200.0, (): 200.0},
}


@pytest.fixture
def expected():
    return Expectations(lambda chosen, methods: SIMULATED[chosen][methods], [COMPENSATED, ()])


def test_before_any_build_the_best_simulation_counts(expected):
    assert expected.expected_db((0, 0, 1)) == 32.0
    assert expected.methods_for((0, 0, 1)) == COMPENSATED
    assert expected.methods_for((0, 1, 1)) == ()


def test_what_the_most_similar_build_with_the_same_methods_showed_is_added(expected):
    expected.learn((0, 0, 0), COMPENSATED, 29.0)
    expected.learn((0, 0, 0), (), 20.5)
    assert expected.expected_db((0, 0, 1)) == 32.0  # 32.0 - 1.0 with the methods, 31.5 + 0.5 without
    assert expected.methods_for((0, 0, 1)) == ()
    expected.learn((0, 1, 1), (), 32.5)  # nearer: 33.5 was simulated
    assert expected.expected_db((0, 1, 1)) == 32.5
    assert expected.expected_db((0, 0, 1)) == 31.0
    assert expected.methods_for((0, 0, 1)) == COMPENSATED


def test_what_loses_nothing_says_nothing_of_others(expected):
    expected.learn((1, 1, 1), (), 115.0)
    expected.learn((1, 1, 1), COMPENSATED, 115.0)
    assert expected.expected_db((0, 1, 1)) == 33.5


def test_without_a_simulation_nothing_is_expected():
    nothing = Expectations(lambda *_: None, [COMPENSATED, ()])
    nothing.learn((0,), (), 20.0)
    assert nothing.expected_db((0,)) is None
    assert nothing.methods_for((0,)) == COMPENSATED
