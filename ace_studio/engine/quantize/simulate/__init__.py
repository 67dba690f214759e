"""Simulation of a plan in float32: nothing is built and no runtime is needed.

Every op reads its inputs rounded to the grid (or the 16-bit type) of its plan and computes in float32, as real kernels
do with their wide accumulators; the style of the runtime (`int8_style`) says what else is rounded to 8 bits. Fusions
of a runtime and the order of sums are not simulated. So the simulation ranks ops and improvements; the artifact is
what is measured.

    graph = float_graph(captured)                                # batch norms folded, weights shared
    ranges = observe_ranges(graph.graph_module, examples)        # only int8-static needs them
    simulator = Simulator(graph, ranges=ranges, style=PAIRS)
    outputs = simulator.outputs(plan, example)                   # the whole model under a plan
    simulator.errors(plan, examples)                             # op id -> error of its value in the whole model

An example is the list of flat tensor inputs, as `Example.tensors` gives it.
"""

from ace_studio.engine.quantize.simulate.int8_style import (
    NNCF,
    PAIRS,
    READS,
    RESULTS,
    Int8Style,
    int8_layout,
    rounding_sums,
    small_ends,
)
from ace_studio.engine.quantize.simulate.runs import Correct, Step
from ace_studio.engine.quantize.simulate.simulator import FloatGraph, Simulator, float_graph
