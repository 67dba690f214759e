from types import SimpleNamespace

import pytest
import torch
from torch import nn

from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.simulate import PAIRS, READS, RESULTS, Simulator, float_graph
from ace_studio.engine.torch_private.exporting import export_program
from tests.engine.quantize.simulate.plans import INT8, ops_of, plan_of, simulated_in


def test_a_value_that_never_moved_is_left_alone(mlp):
    graph = float_graph(SimpleNamespace(program=mlp.exported))
    still = observe_ranges(graph.graph_module, [[torch.ones_like(mlp.example)]])
    simulator = Simulator(graph, ranges=still)
    first = next(op_id for op_id, _ in ops_of(simulator.graph_module))
    assert simulator.errors(plan_of(simulator, INT8, only={first}), [[mlp.example]])[first].sqnr_db > 30.0


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
    torch.manual_seed(0)
    simulator, plan, examples = simulated_in(style, module=Masked(), x=torch.rand(3, 6, 8))
    assert 15.0 < simulator.fidelity_db(plan, examples) < 60.0
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
    assert 25.0 < simulator.fidelity_db(plan_of(simulator, INT8), [[x]]) < 60.0
