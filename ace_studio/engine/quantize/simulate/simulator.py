"""A float graph under any plan: its outputs, and the errors along it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.quantize.fidelity import SQNR_CAP_DB, fidelity_db
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.engine.quantize.simulate import runs
from ace_studio.engine.quantize.simulate.arithmetic import OpArithmetic
from ace_studio.engine.quantize.simulate.int8_style import READS, Int8Style
from ace_studio.engine.quantize.simulate.runs import Correct, LockstepRun, fitting_examples


class Simulator:
    """Runs one float graph with the arithmetic of any plan. Rounded weights are kept between calls."""

    def __init__(
        self, graph: FloatGraph, *, ranges: Mapping[str, ValueRange] | None = None, style: Int8Style = READS
    ) -> None:
        """Make one.

        Args:
            graph: What is simulated.
            ranges: Node name of the graph -> range of its value; only int8-static asks for them.
            style: What the runtime rounds around ops at int8-static.
        """
        self.graph_module = graph.graph_module
        self.folded = graph.folded
        self._arithmetic = OpArithmetic(graph.graph_module, ranges=dict(ranges or {}), style=style)

    def outputs(self, plan: BoundPlan, example: Sequence[Tensor]) -> list[Tensor]:
        """The flat outputs of the whole model under the plan, each of the shape and type that eager gives.

        Raises: ValueError if an int8-static op reads a value whose range is not known.
        """
        with torch.no_grad():
            return list(runs.PlanRun(self._arithmetic, plan).run(*[leaf.clone() for leaf in example]))

    def float_outputs(self, example: Sequence[Tensor]) -> list[Tensor]:
        """The flat outputs of the graph as it is, in float."""
        with torch.no_grad():
            return list(fx.Interpreter(self.graph_module).run(*[leaf.clone() for leaf in example]))

    def lockstep(
        self, plan: BoundPlan, examples: Sequence[Sequence[Tensor]], correct: Correct, *, reference: FloatGraph
    ) -> None:
        """Run examples together, op by op, in float and under the plan; ``correct`` may change what each op gives.

        So many of the examples as fit into memory, one at least. The float values are those of ``reference``: this
        graph with other weights. Raises: ValueError as `outputs` does.
        """
        with torch.no_grad():
            run = LockstepRun(self._arithmetic, plan, correct, reference=reference.graph_module)
            run.run_examples(fitting_examples(self.graph_module, examples))

    def errors(self, plan: BoundPlan, examples: Sequence[Sequence[Tensor]]) -> dict[str, runs.OpError]:
        """Error of every op's value in the whole model under the plan: op id -> error, in graph order.

        The model runs twice side by side, in float and under the plan, so an error holds what came from all ops before.
        A folded batch norm has the error of its convolution. Ops without a floating-point result are left out.
        """
        run = runs.PairRun(self._arithmetic, plan)
        with torch.no_grad():
            for example in examples:
                run.run(*[runs.new_pair(leaf) for leaf in example])
        errors = {op_id: runs.OpError(signal, noise) for op_id, (signal, noise) in run.sums.items()}
        homes = {norm: errors[home] for norm, home in self.folded.items() if home in errors}
        return errors | homes

    def values(
        self, plan: BoundPlan, example: Sequence[Tensor], nodes: Collection[fx.Node], kept: runs.Kept
    ) -> list[tuple[Any, Any]]:
        """Value of each node in float and in the whole model under the plan; ops behind the last of them do not run.

        ``kept`` has what earlier questions with the same plan and example found, and gets what this one finds.

        Raises: ValueError if an int8-static op reads a value whose range is not known.
        """
        run = runs.ValueRun(self._arithmetic, plan, nodes, kept)
        if not run.is_done:
            with torch.no_grad(), suppress(runs.Reached):
                run.run(*[runs.new_pair(leaf) for leaf in example], initial_env=dict(kept))
        return [(run.found[node].wide, run.found[node].rounded) for node in nodes]

    def weight(self, plan: BoundPlan, node: fx.Node) -> tuple[Tensor, Tensor, int] | None:
        """The stored factor of a product in float and as the plan stores it, and its axis of output channels."""
        return self._arithmetic.weight(node, plan.precision_of(node.meta[OP_ID]), plan.scheme_of(node.meta[OP_ID]))

    def fidelity_db(
        self,
        plan: BoundPlan,
        examples: Sequence[Sequence[Tensor]],
        references: Sequence[Sequence[Tensor]] | None = None,
    ) -> float:
        """Fidelity of the worst output under the plan, over all examples; 200 if no float output changes.

        ``references`` are the flat outputs to compare with; None: those of this graph in float.
        """
        exact = [self.float_outputs(example) for example in examples] if references is None else references
        found = fidelity_db(exact, [self.outputs(plan, example) for example in examples])
        return SQNR_CAP_DB if found is None else found


@dataclass(frozen=True)
class FloatGraph:
    """A captured graph in float, with batch norms folded."""

    graph_module: fx.GraphModule
    """A `flat_graph` with batch norms folded; weights are its own only where a fold changed them."""
    folded: Mapping[str, str] = field(default_factory=dict)
    """Op id of a folded batch norm -> op id of its convolution, whose result is the norm's."""


def float_graph(captured: CapturedModel) -> FloatGraph:
    """A copy of the captured graph in which every batch norm behind a convolution is folded into it.

    The targets fold them too, and a grid per tensor depends on it. The same function up to rounding.
    """
    graph_module = flat_graph(captured.program)
    everything = {node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta}
    return FloatGraph(graph_module, fold_batch_norms(graph_module, everything))
