"""Simulated plans of small models."""

from types import SimpleNamespace

import torch
from torch import nn

from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.quantize.simulate import Simulator, float_graph
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.records.recipes.plan import Plan, Precision
from tests.engine.bound_plans import bound_at

INT8 = Precision.INT8_STATIC

ALL = [one for one in Precision if one is not Precision.FP32]


def simulator_of(program):
    graph = float_graph(SimpleNamespace(program=program.exported))
    examples = [[program.example]]
    return Simulator(graph, ranges=observe_ranges(graph.graph_module, examples)), examples


def ops_of(graph_module):
    """Op id and node of every op of the graph, in order."""
    nodes = [one for one in graph_module.graph.nodes if one.op == "call_function" and OP_ID in one.meta]
    return [(one.meta[OP_ID], one) for one in nodes]


def plan_of(simulator, precision, *, only=None, **schemes):
    ids = [op_id for op_id, _ in ops_of(simulator.graph_module)]
    asked = {op_id: precision if only is None or op_id in only else Precision.FP32 for op_id in ids}
    return bound_at(Plan(default=precision, **schemes), asked)


class Residual(nn.Module):
    """Linear layers whose input and result are read in float too, and a ReLU behind a product."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = torch.relu(self.one(x))
        return x.tanh() + self.other(y).tanh() + y.tanh()


def simulated_in(style, *, precision=INT8, module=None, x=None):
    torch.manual_seed(0)
    x = torch.randn(9, 8) if x is None else x
    module = Residual() if module is None else module
    exported = export_program(module.eval(), (x,), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
    graph = float_graph(SimpleNamespace(program=exported))
    simulator = Simulator(graph, ranges=observe_ranges(graph.graph_module, [[x]]), style=style)
    return simulator, plan_of(simulator, precision), [[x]]
