from types import SimpleNamespace

import torch
from torch import nn

from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.simulate import NNCF, PAIRS, READS, RESULTS, int8_layout, small_ends
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from tests.engine.quantize.simulate.plans import INT8, ops_of, plan_of, simulated_in, simulator_of


class Sums(nn.Module):
    """A sum of two products' results, and a sum of two squares."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = torch.relu(self.one(x)) + self.other(x)
        return y * y + x.square()


def test_only_sums_of_products_are_rounded_and_only_where_the_products_are_low():
    torch.manual_seed(0)
    x = torch.randn(9, 8)
    exported = export_program(Sums().eval(), (x,), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
    simulator, examples = simulator_of(SimpleNamespace(exported=exported, example=x))
    found = {kind: [op for op, node in ops_of(simulator.graph_module) if kind in str(node.target)] for kind in
             ("add", "linear")}  # fmt: skip
    (of_products, of_squares), products = found["add"], found["linear"]

    def noise(op_id, *low):
        return simulator.errors(plan_of(simulator, INT8, only=set(low)), examples)[op_id].noise

    assert noise(of_products, of_products, *products) > noise(of_products, *products) > 0.0
    assert noise(of_squares, of_squares, *products) == noise(of_squares, *products)
    assert noise(of_products, of_products) == 0.0
    assert noise(of_products, of_products, products[0]) == noise(of_products, products[0])


def _rounded_names(style, **options):
    simulator, plan, examples = simulated_in(style, **options)
    graph_module = simulator.graph_module
    layout = int8_layout(graph_module, plan.ops_at(INT8), style, ranges=observe_ranges(graph_module, examples))
    return {node.name for node in layout.values}


def test_results_are_rounded_behind_their_relu_and_a_matrix_product_for_float_readers_is_not():
    assert _rounded_names(PAIRS) == {"relu"}


def test_xnnpack_rounds_every_result_behind_its_relu_and_no_input_for_others():
    assert {"relu", "linear_1"} <= _rounded_names(RESULTS)
    assert "x" not in _rounded_names(RESULTS)


def test_results_that_are_rounded_for_float_readers_cost_more():
    reads, pairs, results = (s.fidelity_db(plan, x) for s, plan, x in map(simulated_in, (READS, PAIRS, RESULTS)))
    assert results < pairs < reads


def test_a_rounded_result_shows_in_the_error_of_who_reads_it():
    found = {}
    for style in (READS, PAIRS):
        simulator, plan, examples = simulated_in(style)
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


def _two_small_convolutions():
    return nn.Sequential(nn.Conv1d(2, 32, 9), nn.ReLU(), nn.Conv1d(32, 1, 1), nn.Conv1d(1, 1, 1))


def test_a_small_last_convolution_stays_float_in_models_of_nncf_too():
    x = torch.randn(4, 2, 16, generator=torch.Generator().manual_seed(0))
    (simulator, plan, examples), (other, _, _) = (
        simulated_in(style, module=_two_small_convolutions(), x=x) for style in (NNCF, READS)
    )
    ids = [op_id for op_id, _ in ops_of(simulator.graph_module)]
    without = plan_of(simulator, INT8, only=set(ids[:-1]))
    assert (
        simulator.fidelity_db(plan, examples)
        == other.fidelity_db(without, examples)
        != other.fidelity_db(plan, examples)
    )


def test_a_small_convolution_in_front_of_a_float_one_is_not_the_last():
    x = torch.randn(4, 2, 16, generator=torch.Generator().manual_seed(0))
    simulator, _, _ = simulated_in(PAIRS, module=_two_small_convolutions(), x=x)
    ids = [op_id for op_id, _ in ops_of(simulator.graph_module)]
    assert {node.name for node in small_ends(simulator.graph_module, PAIRS, ids)} == {"conv1d_2"}
    assert small_ends(simulator.graph_module, PAIRS, ids[:-1]) == frozenset()
    assert small_ends(simulator.graph_module, READS, ids) == frozenset()


class Gates(nn.Module):
    """A SiLU between two convolutions, and one between a convolution and a float op."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Conv1d(2, 8, 3), nn.Conv1d(8, 8, 3)

    def forward(self, x):
        return nn.functional.silu(self.other(nn.functional.silu(self.one(x)))).tanh()


def test_gates_are_rounded_behind_convolutions_unless_only_float_ops_read_them():
    x = torch.randn(4, 2, 16, generator=torch.Generator().manual_seed(0))
    assert _rounded_names(PAIRS, module=Gates(), x=x) == {"conv1d", "silu", "conv1d_1"}
    behind_linear = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8))
    assert "silu" not in _rounded_names(PAIRS, module=behind_linear, x=torch.randn(9, 8))


def test_sums_that_only_float_ops_read_are_not_rounded():
    class Stream(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Conv1d(2, 8, 3), nn.Conv1d(2, 8, 3)

        def forward(self, x):
            return (self.one(x) + self.other(x)).tanh()

    x = torch.randn(4, 2, 16, generator=torch.Generator().manual_seed(0))
    assert _rounded_names(PAIRS, module=Stream(), x=x) == {"conv1d", "conv1d_1"}


class Scales(nn.Module):
    """A sum of a scale and of a coarser one that is upsampled, before another convolution."""

    def __init__(self, mode):
        super().__init__()
        self.fine, self.coarse, self.other = nn.Conv1d(2, 8, 1), nn.Conv1d(2, 8, 2, stride=2), nn.Conv1d(8, 8, 1)
        self.mode = mode

    def forward(self, x):
        upsampled = nn.functional.interpolate(self.coarse(x), scale_factor=2.0, mode=self.mode)
        return self.other(self.fine(x) + upsampled).tanh()


def test_sums_are_rounded_behind_nearest_upsampling_but_not_behind_interpolation():
    x = torch.randn(4, 2, 16, generator=torch.Generator().manual_seed(0))
    assert "add" in _rounded_names(PAIRS, module=Scales("nearest"), x=x)
    assert "add" not in _rounded_names(PAIRS, module=Scales("linear"), x=x)
