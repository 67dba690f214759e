"""What a plan does to the numbers of a captured graph, simulated in float32: nothing is built and no runtime is needed.

Every op reads its inputs rounded to the grid (or the 16-bit type) that the plan gives it and computes in float32, as
real kernels do with their wide accumulators; what else is rounded to 8 bits follows from the style of a runtime
(`int8_style`). What is not simulated: which neighbours a runtime fuses, and the order of sums. So it ranks ops and
improvements; the final word is the built artifact.

    graph = float_graph(captured)                                # batch norms folded, weights shared
    ranges = observe_ranges(graph.graph_module, examples)        # only int8-static needs them
    simulator = Simulator(graph, ranges=ranges, style=PAIRS)
    outputs = simulator.outputs(plan, example)                   # the whole model under a plan
    simulator.local(wanted, example, visit=...)                  # every op alone, on float inputs, in one pass
    simulator.errors(plan, examples)                             # op id -> error of its value in the whole model

An example is the list of flat tensor inputs, as `Example.tensors` gives it.
"""

from __future__ import annotations

from ace_studio.engine.quantize.simulate.arithmetic import simulated_precisions
from ace_studio.engine.quantize.simulate.float_graph import FloatGraph, float_graph, ops_of
from ace_studio.engine.quantize.simulate.int8_style import PAIRS, READS, RESULTS, Int8Style, int8_layout, rounding_sums
from ace_studio.engine.quantize.simulate.op_error import OpError, add_energy
from ace_studio.engine.quantize.simulate.simulator import Simulator

__all__ = [
    "PAIRS",
    "READS",
    "RESULTS",
    "FloatGraph",
    "Int8Style",
    "OpError",
    "Simulator",
    "add_energy",
    "float_graph",
    "int8_layout",
    "ops_of",
    "rounding_sums",
    "simulated_precisions",
]
