"""What a method looks at: inputs of ops, sampled over the calibration examples, and how good a plan is at present."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.improve.edits import Layer, with_layers
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.fidelity import SQNR_CAP_DB
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import READS, Int8Style, OpError, Simulator, add_energy, float_graph
from ace_studio.records.recipes.plan import Precision

HIGH = frozenset({Precision.FP32, Precision.BF16, Precision.FP16})
"""Precisions that are no integers: nothing is rounded to a grid there."""


@dataclass(frozen=True)
class Workshop:
    """Everything that a method works with."""

    captured: CapturedModel
    """As it was captured; changes are layers over it."""
    plan: BoundPlan
    work: Sequence[Sequence[Tensor]]
    """Flat inputs of the calibration examples to work with."""
    ranges: RangeChoice
    reporter: Reporter
    style: Int8Style = READS
    """What the targets round around ops at int8-static."""

    def simulator(self, layers: Sequence[Layer]) -> Simulator:
        """The simulated model with these changes, its ranges found on the examples to work with."""
        graph = float_graph(with_layers(self.captured, layers, is_low=self.is_low))
        if Precision.INT8_STATIC not in self.plan.precisions:
            return Simulator(graph)
        grid = self.plan.plan.activations
        ranges = observe_ranges(graph.graph_module, self.work, choice=self.ranges, grid_of=lambda _: grid)
        return Simulator(graph, ranges=ranges, style=self.style)

    def float_module(self, layers: Sequence[Layer]) -> fx.GraphModule:
        """The graph with these changes, in float, every op a node of its own."""
        return flat_graph(with_layers(self.captured, layers, is_low=self.is_low).program)

    def is_low(self, op_id: str) -> bool:
        """Whether the plan rounds this op to a grid of integers."""
        return self.plan.precision.get(op_id, Precision.FP32) not in HIGH

    def fidelity_db(self, layers: Sequence[Layer], references: Sequence[Sequence[Tensor]] | None = None) -> float:
        """Fidelity of the simulated plan on the examples to work with, against the unchanged float model."""
        wanted = references or self.references(self.work)
        return fidelity_db(self.simulator(layers), self.plan, self.work, wanted)

    def references(self, examples: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
        """What the unchanged float graph gives."""
        simulator = Simulator(float_graph(self.captured))
        return [simulator.float_outputs(example) for example in examples]


def fidelity_db(
    simulator: Simulator,
    plan: BoundPlan,
    examples: Sequence[Sequence[Tensor]],
    references: Sequence[Sequence[Tensor]],
) -> float:
    """SQNR of the worst floating-point output over all examples together, in dB."""
    sums: dict[int, list[float]] = {}
    for example, reference in zip(examples, references, strict=True):
        for index, (wide, rounded) in enumerate(zip(reference, simulator.outputs(plan, example), strict=True)):
            if wide.is_floating_point():
                add_energy(sums.setdefault(index, [0.0, 0.0]), wide, rounded)
    return min((OpError(*pair).sqnr_db for pair in sums.values()), default=SQNR_CAP_DB)


def watch_values(
    graph_module: fx.GraphModule,
    examples: Sequence[Sequence[Tensor]],
    names: Collection[str],
    visit: Callable[[str, Tensor], None],
) -> None:
    """Run the examples in float and show the values of some nodes: ``visit(node name, value)``."""
    with torch.no_grad():
        run = _Watching(graph_module, frozenset(names), visit)
        for example in examples:
            run.run(*[leaf.clone() for leaf in example])


class _Watching(fx.Interpreter):
    def __init__(
        self, graph_module: fx.GraphModule, names: frozenset[str], visit: Callable[[str, Tensor], None]
    ) -> None:
        super().__init__(graph_module)
        self._names, self._visit = names, visit

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; the name of the argument is the base class's."""
        result = super().run_node(n)
        if n.name in self._names and isinstance(result, Tensor):
            self._visit(n.name, result)
        return result
