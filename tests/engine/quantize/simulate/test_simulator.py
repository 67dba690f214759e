from itertools import product
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.fidelity import SQNR_CAP_DB, fidelity_db, sqnr_db
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.pt2e import is_torchao_installed, quantize_int8
from ace_studio.engine.quantize.simulate import Simulator, float_graph
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.records.recipes.plan import ActivationGrid, Plan, Precision, Scheme, WeightGranularity
from ace_studio.records.recipes.recipe import Observer
from tests.engine.bound_plans import bound_at
from tests.engine.quantize.simulate.plans import ALL, INT8, ops_of, plan_of, simulator_of


def test_a_plan_of_fp32_gives_what_eager_gives(program):
    simulator, examples = simulator_of(program)
    plan = plan_of(simulator, Precision.FP32)
    torch.testing.assert_close(simulator.outputs(plan, examples[0])[0], program.expected)
    assert simulator.fidelity_db(plan, examples) == SQNR_CAP_DB
    assert {error.sqnr_db for error in simulator.errors(plan, examples).values()} == {SQNR_CAP_DB}


@pytest.mark.parametrize("precision", ALL)
def test_every_precision_costs_something_and_not_everything(program, precision):
    simulator, examples = simulator_of(program)
    plan = plan_of(simulator, precision)
    assert -2.0 < simulator.fidelity_db(plan, examples) < 90.0
    rounded = simulator.outputs(plan, examples[0])
    assert 10.0 < sqnr_db(simulator.float_outputs(examples[0]), rounded) < 90.0
    found = fidelity_db([simulator.float_outputs(examples[0])], [rounded])
    assert found == pytest.approx(simulator.fidelity_db(plan, examples), abs=1e-6)


def test_more_bits_cost_less(program):
    simulator, examples = simulator_of(program)
    found = [
        simulator.fidelity_db(plan_of(simulator, one), examples)
        for one in (Precision.INT4_WEIGHT, Precision.INT8_WEIGHT, Precision.FP16)
    ]
    assert found == sorted(found)


def test_the_error_along_the_graph_ends_as_that_of_the_output(mlp):
    simulator, examples = simulator_of(mlp)
    plan = plan_of(simulator, INT8)
    errors = simulator.errors(plan, examples)
    assert list(errors) == [op_id for op_id, _ in ops_of(simulator.graph_module)]
    outputs = simulator.float_outputs(examples[0]), simulator.outputs(plan, examples[0])
    assert list(errors.values())[-1].sqnr_db == pytest.approx(sqnr_db(*outputs))


def test_one_scale_for_all_channels_costs_more_where_channels_differ():
    torch.manual_seed(0)
    module = nn.Linear(16, 8)
    with torch.no_grad():
        module.weight.mul_(torch.logspace(0, 2, 8)[:, None])
    x = torch.randn(9, 16)
    exported = export_program(module.eval(), (x,), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
    simulator, _ = simulator_of(SimpleNamespace(exported=exported, example=x))
    ((op_id, _),) = ops_of(simulator.graph_module)
    small = lambda plan: (simulator.outputs(plan, [x])[0] - module(x))[:, 0].abs().mean()  # noqa: E731
    per_channel = small(plan_of(simulator, INT8))
    assert small(plan_of(simulator, INT8, weights=WeightGranularity.PER_TENSOR)) > 3 * per_channel
    by_rule = bound_at(Plan(default=INT8), {op_id: INT8}, Scheme(weights=WeightGranularity.PER_TENSOR))
    assert small(by_rule) > 3 * per_channel


def test_a_symmetric_grid_costs_more_behind_a_relu(mlp):
    simulator, examples = simulator_of(mlp)
    last = [op_id for op_id, _ in ops_of(simulator.graph_module)][-1]
    affine, symmetric = (
        simulator.fidelity_db(plan_of(simulator, INT8, only={last}, activations=grid), examples)
        for grid in ActivationGrid
    )
    assert symmetric < affine - 2.0


def test_small_groups_cost_less_than_large_ones(mlp):
    simulator, examples = simulator_of(mlp)
    small, large = (
        simulator.fidelity_db(plan_of(simulator, Precision.INT4_WEIGHT, group_size=size), examples) for size in (16, 0)
    )
    assert small > large


def test_static_int8_asks_for_ranges(mlp):
    graph = float_graph(SimpleNamespace(program=mlp.exported))
    simulator = Simulator(graph)
    with pytest.raises(ValueError, match="range of"):
        simulator.outputs(plan_of(simulator, INT8), [mlp.example])


def test_the_model_and_the_inputs_are_left_as_they_are(program):
    before = {name: value.clone() for name, value in program.module.state_dict().items()}
    given = program.example.clone()
    simulator, examples = simulator_of(program)
    for precision in ALL:
        simulator.outputs(plan_of(simulator, precision), examples[0])
    assert torch.equal(program.example, given)
    assert all(torch.equal(value, before[name]) for name, value in program.module.state_dict().items())


SCHEMES = [
    pytest.param(observer, granularity, grid, marks=[pytest.mark.full] * ((number + column) % 4 > 0))
    for number, observer in enumerate(Observer)
    for column, (granularity, grid) in enumerate(product(WeightGranularity, ActivationGrid))
]
"""All of them; those that always run have each observer once, and each granularity with each grid."""


@pytest.mark.skipif(not is_torchao_installed(), reason="needs torchao")
@pytest.mark.parametrize(("observer", "granularity", "grid"), SCHEMES)
def test_torch_computes_what_is_simulated(mlp, granularity, grid, observer):
    graph = float_graph(SimpleNamespace(program=mlp.exported))
    examples, choice = [[mlp.example]], RangeChoice(observer)
    ranges = observe_ranges(graph.graph_module, examples, choice=choice, grid_of=lambda _: grid)
    simulator = Simulator(graph, ranges=ranges)
    plan = plan_of(simulator, INT8, weights=granularity, activations=grid)
    linear = {op_id for op_id, node in ops_of(graph.graph_module) if "linear" in str(node.target)}
    converted, _ = quantize_int8(
        flat_graph(mlp.exported),
        static=linear,
        calibration=examples,
        reporter=Reporter(),
        schemes=plan.scheme_of,
        ranges=choice,
    )
    with torch.no_grad():
        built = converted(mlp.example)
    assert sqnr_db(simulator.outputs(plan, [mlp.example]), built) > 80.0
    assert simulator.fidelity_db(plan, examples) > 20.0


def test_a_folded_norm_has_the_error_of_its_convolution(conv2d):
    simulator, examples = simulator_of(conv2d)
    errors = simulator.errors(plan_of(simulator, INT8), examples)
    ((norm, home),) = simulator.folded.items()
    assert errors[norm] is errors[home]
