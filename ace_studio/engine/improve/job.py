"""The job of a method of improvement: the capture, the plan and the calibration examples, and how good a plan is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from torch import Tensor, fx

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.improve.weights import WeightChange, with_changed_weights
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import READS, Correct, Int8Style, Simulator, float_graph
from ace_studio.engine.quantize.visit import visit_values
from ace_studio.records.recipes.plan import FLOATS, Precision

HIGH = frozenset(FLOATS)
"""Float precisions of 16 bits or more: improvements are for the others."""


@dataclass(frozen=True)
class ImproveJob:
    """The inputs of every method."""

    captured: CapturedModel
    """As it was captured; changes are kept apart."""
    plan: BoundPlan
    work: Sequence[Sequence[Tensor]]
    """Flat inputs of the calibration examples to work with."""
    ranges: RangeChoice
    reporter: Reporter
    style: Int8Style = READS
    """What the targets round around ops at int8-static."""
    max_seconds: float = 120.0
    """The most time for learning."""

    def simulator(self, changes: Sequence[WeightChange]) -> Simulator:
        """The simulated model with these changes, its ranges found on the examples to work with."""
        graph = float_graph(with_changed_weights(self.captured, changes, is_low=self.is_low))
        if Precision.INT8_STATIC not in self.plan.precisions:
            return Simulator(graph)
        grid = self.plan.plan.activations
        ranges = observe_ranges(graph.graph_module, self.work, choice=self.ranges, grid_of=lambda _: grid)
        return Simulator(graph, ranges=ranges, style=self.style)

    def lockstep(self, changes: Sequence[WeightChange], simulator: Simulator, correct: Correct) -> None:
        """`Simulator.lockstep` on the examples to work with, beside the float model as exact changes leave it."""
        exact = [change for change in changes if change.is_exact]
        reference = float_graph(with_changed_weights(self.captured, exact))
        simulator.lockstep(self.plan, self.work, correct, reference=reference)

    def visit_inputs(
        self, changes: Sequence[WeightChange], names: Collection[str], visit: Callable[[str, Tensor], None]
    ) -> None:
        """Run the examples to work with in float, with these changes; ``visit`` gets the values of the named nodes."""

        def see(node: fx.Node, value: Tensor) -> None:
            if node.name in names:
                visit(node.name, value)

        visit_values(
            flat_graph(with_changed_weights(self.captured, changes, is_low=self.is_low).program), self.work, see
        )

    def is_low(self, op_id: str) -> bool:
        """Whether the plan rounds this op to a grid of integers."""
        return self.plan.precision_of(op_id) not in HIGH

    def fidelity_db(self, changes: Sequence[WeightChange], references: Sequence[Sequence[Tensor]]) -> float:
        """Fidelity of the simulated plan on the examples to work with, against the unchanged float model."""
        return self.simulator(changes).sqnr_db(self.plan, self.work, references)

    def references(self, examples: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
        """Flat outputs of the unchanged float graph, per example."""
        simulator = Simulator(float_graph(self.captured))
        return [simulator.float_outputs(example) for example in examples]
