"""The simulated plan: what it leaves alone, what it rounds, and how it adds up."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.fidelity import SQNR_CAP_DB, sqnr_db
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.pt2e import is_torchao_installed, quantize_int8
from ace_studio.engine.quantize.simulate import (
    PAIRS,
    READS,
    RESULTS,
    OpError,
    Simulator,
    float_graph,
    int8_layout,
    ops_of,
    simulated_precisions,
)
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.records.recipes.plan import ActivationGrid, Plan, Precision, Scheme, WeightGranularity
from ace_studio.records.recipes.recipe import Observer
from tests.engine.bound_plans import bound_at

INT8 = Precision.INT8_STATIC
ALL = [one for one in Precision if one is not Precision.FP32]


def _simulator(program):
    graph = float_graph(SimpleNamespace(program=program.exported))
    examples = [[program.example]]
    return Simulator(graph, ranges=observe_ranges(graph.graph_module, examples)), examples


def _plan(simulator, precision, *, only=None, **schemes):
    ids = [op_id for op_id, _ in ops_of(simulator.graph_module)]
    asked = {op_id: precision if only is None or op_id in only else Precision.FP32 for op_id in ids}
    return bound_at(Plan(default=precision, **schemes), asked)


@pytest.fixture(params=["mlp", "conv1d", "conv2d"])
def program(request):
    return request.getfixturevalue(request.param)


def test_a_plan_of_fp32_gives_what_eager_gives(program):
    simulator, examples = _simulator(program)
    plan = _plan(simulator, Precision.FP32)
    torch.testing.assert_close(simulator.outputs(plan, examples[0])[0], program.expected)
    assert simulator.sqnr_db(plan, examples) == SQNR_CAP_DB
    assert {error.sqnr_db for error in simulator.errors(plan, examples).values()} == {SQNR_CAP_DB}


@pytest.mark.parametrize("precision", ALL)
def test_every_precision_costs_something_and_not_everything(program, precision):
    simulator, examples = _simulator(program)
    plan = _plan(simulator, precision)
    assert 10.0 < simulator.sqnr_db(plan, examples) < 90.0
    rounded = simulator.outputs(plan, examples[0])
    assert sqnr_db(simulator.float_outputs(examples[0]), rounded) == pytest.approx(
        simulator.sqnr_db(plan, examples), abs=1e-6
    )


def test_more_bits_cost_less(program):
    simulator, examples = _simulator(program)
    found = [
        simulator.sqnr_db(_plan(simulator, one), examples)
        for one in (Precision.INT4_WEIGHT, Precision.INT8_WEIGHT, Precision.FP16)
    ]
    assert found == sorted(found)


def test_the_error_along_the_graph_ends_as_that_of_the_output(mlp):
    simulator, examples = _simulator(mlp)
    plan = _plan(simulator, INT8)
    errors = simulator.errors(plan, examples)
    assert list(errors) == [op_id for op_id, _ in ops_of(simulator.graph_module)]
    assert list(errors.values())[-1].sqnr_db == pytest.approx(simulator.sqnr_db(plan, examples))


def test_a_folded_norm_has_the_error_of_its_convolution(conv2d):
    simulator, examples = _simulator(conv2d)
    errors = simulator.errors(_plan(simulator, INT8), examples)
    ((norm, home),) = simulator.folded.items()
    assert errors[norm] is errors[home]


def test_an_op_alone_differs_as_if_it_were_the_only_one_planned(program):
    simulator, examples = _simulator(program)
    seen = {}

    def visit(op_id, precision, wide, rounded):
        seen[op_id, precision] = OpError(
            float(wide.double().square().sum()), float((wide - rounded).double().square().sum())
        )

    wanted = {op_id: ALL for op_id, node in ops_of(simulator.graph_module)}
    simulator.local(wanted, examples[0], visit=visit)
    assert {op_id for op_id, _ in seen} >= {
        op_id for op_id, node in ops_of(simulator.graph_module) if simulated_precisions(str(node.target))
    }
    for (op_id, precision), error in seen.items():
        planned = simulator.errors(_plan(simulator, precision, only={op_id}), examples)[op_id]
        assert planned.sqnr_db == pytest.approx(error.sqnr_db, abs=0.01), (op_id, precision)


def test_one_step_for_all_channels_costs_more_where_channels_differ():
    torch.manual_seed(0)
    module = nn.Linear(16, 8)
    with torch.no_grad():
        module.weight.mul_(torch.logspace(0, 2, 8)[:, None])
    x = torch.randn(9, 16)
    exported = export_program(module.eval(), (x,), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
    simulator, _ = _simulator(SimpleNamespace(exported=exported, example=x))
    ((op_id, _),) = ops_of(simulator.graph_module)
    small = lambda plan: (simulator.outputs(plan, [x])[0] - module(x))[:, 0].abs().mean()  # noqa: E731
    per_channel = small(_plan(simulator, INT8))
    assert small(_plan(simulator, INT8, weights=WeightGranularity.PER_TENSOR)) > 3 * per_channel
    by_rule = bound_at(Plan(default=INT8), {op_id: INT8}, Scheme(weights=WeightGranularity.PER_TENSOR))
    assert small(by_rule) > 3 * per_channel


def test_a_symmetric_grid_costs_more_behind_a_relu(mlp):
    simulator, examples = _simulator(mlp)
    last = [op_id for op_id, _ in ops_of(simulator.graph_module)][-1]
    affine, symmetric = (
        simulator.sqnr_db(_plan(simulator, INT8, only={last}, activations=grid), examples) for grid in ActivationGrid
    )
    assert symmetric < affine - 2.0


def test_small_groups_cost_less_than_large_ones(mlp):
    simulator, examples = _simulator(mlp)
    small, large = (
        simulator.sqnr_db(_plan(simulator, Precision.INT4_WEIGHT, group_size=size), examples) for size in (16, 0)
    )
    assert small > large


def test_static_int8_asks_for_ranges(mlp):
    graph = float_graph(SimpleNamespace(program=mlp.exported))
    simulator = Simulator(graph)
    with pytest.raises(ValueError, match="range of"):
        simulator.outputs(_plan(simulator, INT8), [mlp.example])


def test_the_model_and_the_inputs_are_left_as_they_are(program):
    before = {name: value.clone() for name, value in program.module.state_dict().items()}
    given = program.example.clone()
    simulator, examples = _simulator(program)
    for precision in ALL:
        simulator.outputs(_plan(simulator, precision), examples[0])
    assert torch.equal(program.example, given)
    assert all(torch.equal(value, before[name]) for name, value in program.module.state_dict().items())


@pytest.mark.skipif(not is_torchao_installed(), reason="needs torchao")
@pytest.mark.parametrize("observer", list(Observer))
@pytest.mark.parametrize("granularity", list(WeightGranularity))
@pytest.mark.parametrize("grid", list(ActivationGrid))
def test_torch_computes_what_is_simulated(mlp, granularity, grid, observer):
    graph = float_graph(SimpleNamespace(program=mlp.exported))
    examples, choice = [[mlp.example]], RangeChoice(observer)
    ranges = observe_ranges(graph.graph_module, examples, choice=choice, grid_of=lambda _: grid)
    simulator = Simulator(graph, ranges=ranges)
    plan = _plan(simulator, INT8, weights=granularity, activations=grid)
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
    assert simulator.sqnr_db(plan, examples) > 20.0


class Sums(nn.Module):
    """A sum of two products' results, and a sum of two squares."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = torch.relu(self.one(x)) + self.other(x)
        return y * y + x.square()


def test_only_sums_of_products_are_rounded():
    torch.manual_seed(0)
    x = torch.randn(9, 8)
    exported = export_program(Sums().eval(), (x,), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
    simulator, examples = _simulator(SimpleNamespace(exported=exported, example=x))
    sums = [op_id for op_id, node in ops_of(simulator.graph_module) if "add" in str(node.target)]
    noise = [simulator.errors(_plan(simulator, INT8, only={op_id}), examples)[op_id].noise for op_id in sums]
    assert noise[0] > 0.0
    assert noise[1] == 0.0


def test_a_value_that_never_moved_is_left_alone(mlp):
    graph = float_graph(SimpleNamespace(program=mlp.exported))
    still = observe_ranges(graph.graph_module, [[torch.ones_like(mlp.example)]])
    simulator = Simulator(graph, ranges=still)
    first = next(op_id for op_id, _ in ops_of(simulator.graph_module))
    assert simulator.errors(_plan(simulator, INT8, only={first}), [[mlp.example]])[first].sqnr_db > 30.0


class Residual(nn.Module):
    """Linear layers whose input and result are read in float too, and a ReLU behind a product."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = torch.relu(self.one(x))
        return x.tanh() + self.other(y).tanh() + y.tanh()


def _styled(style, *, precision=INT8, module=None, x=None):
    torch.manual_seed(0)
    x = torch.randn(9, 8) if x is None else x
    module = Residual() if module is None else module
    exported = export_program(module.eval(), (x,), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
    graph = float_graph(SimpleNamespace(program=exported))
    simulator = Simulator(graph, ranges=observe_ranges(graph.graph_module, [[x]]), style=style)
    return simulator, _plan(simulator, precision), [[x]]


def _rounded_names(style, **options):
    simulator, plan, examples = _styled(style, **options)
    graph_module = simulator.graph_module
    layout = int8_layout(graph_module, plan.ops_at(INT8), style, ranges=observe_ranges(graph_module, examples))
    return {node.name for node in layout.values}


def test_results_are_rounded_behind_their_relu_and_a_matrix_product_for_float_readers_is_not():
    assert _rounded_names(PAIRS) == {"relu"}


def test_xnnpack_rounds_every_result_behind_its_relu_and_no_input_for_others():
    assert {"relu", "linear_1"} <= _rounded_names(RESULTS)
    assert "x" not in _rounded_names(RESULTS)


def test_a_style_changes_only_int8_static():
    for precision in (Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT, Precision.FP16):
        found = {
            style.name: s.sqnr_db(plan, x)
            for style in (READS, PAIRS)
            for s, plan, x in [_styled(style, precision=precision)]
        }
        assert len(set(found.values())) == 1


def test_results_that_are_rounded_for_float_readers_cost_more():
    reads, pairs, results = (s.sqnr_db(plan, x) for s, plan, x in map(_styled, (READS, PAIRS, RESULTS)))
    assert results < pairs < reads


def test_a_rounded_result_shows_in_the_error_of_who_reads_it():
    found = {}
    for style in (READS, PAIRS):
        simulator, plan, examples = _styled(style)
        errors = simulator.errors(plan, examples)
        found[style.name] = errors["relu"]
    assert found["pairs"].noise > 1.05 * found["reads"].noise


def test_a_bias_on_three_dimensions_is_added_in_float_and_what_follows_stays_float():
    module, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.randn(2, 9, 8)
    assert _rounded_names(PAIRS, module=module, x=x) == set()
    assert _rounded_names(PAIRS, module=module, x=x[0]) == {"relu"}


def test_a_small_last_convolution_stays_float_where_its_result_would_be_rounded():
    module = nn.Sequential(nn.Conv1d(2, 32, 9), nn.ReLU(), nn.Conv1d(32, 1, 1))
    x = torch.randn(4, 2, 16, generator=torch.Generator().manual_seed(0))
    large = nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 16, 3))
    assert _rounded_names(PAIRS, module=module, x=x) == {"relu"}
    assert _rounded_names(PAIRS, module=large, x=x) == {"relu", "conv1d_1"}


class Masked(nn.Module):
    """Attention without projections behind it: a mask of minus infinity added to products; x [n, 6, 8]."""

    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(-1, -2)
        return (scores + torch.zeros_like(scores).masked_fill(x[..., :1] > 0.5, float("-inf")).mT).softmax(-1)


@pytest.mark.parametrize("style", [READS, PAIRS, RESULTS])
def test_what_is_beside_a_mask_of_minus_infinity_is_simulated(style):
    simulator, plan, examples = _styled(style, module=Masked(), x=torch.rand(3, 6, 8))
    assert 15.0 < simulator.sqnr_db(plan, examples) < 60.0
    errors = simulator.errors(plan, examples)
    assert errors["add"].sqnr_db == pytest.approx(errors["matmul"].sqnr_db, abs=10.0)  # of its finite places


class StoredFactor(nn.Module):
    """A stored matrix times values, as graph networks and Fourier transforms have it, and a stored sum; x [9, 8]."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("neighbours", torch.rand(5, 9))
        self.shift = nn.Parameter(torch.randn(8))

    def forward(self, x):
        return self.neighbours @ self.layer(x) + self.shift


@pytest.mark.parametrize("style", [READS, PAIRS, RESULTS])
def test_a_stored_factor_brings_its_range_with_it(style):
    torch.manual_seed(0)
    x = torch.randn(9, 8)
    exported = export_program(StoredFactor().eval(), (x,), {}, dynamic_shapes=None, strict=False)
    graph = float_graph(SimpleNamespace(program=exported))
    simulator = Simulator(graph, ranges=observe_ranges(graph.graph_module, [[x]]), style=style)
    assert 25.0 < simulator.sqnr_db(_plan(simulator, INT8), [[x]]) < 60.0
