"""The ranges that values of a graph take over the calibration examples, found by running the graph op by op."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.ops.roles import op_role
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.observers import RangeChoice, ValueObserver, ValueRange
from ace_studio.records.recipes.plan import ActivationGrid


def observe_ranges(
    graph_module: fx.GraphModule,
    examples: Sequence[Sequence[Tensor]],
    *,
    names: Collection[str] | None = None,
    choice: RangeChoice | None = None,
    grid_of: Callable[[str], ActivationGrid] = lambda _: ActivationGrid.AFFINE,
    reporter: Reporter | None = None,
) -> dict[str, ValueRange]:
    """Range of every floating-point value over the examples.

    Values that are not finite have none: a mask of minus infinity has no grid, and nobody asks for one before the
    softmax behind it. Where a product reads or gives such a value, or an output of the graph holds NaN, that is an
    error.

    Args:
        graph_module: A `flat_graph`; it is not changed.
        examples: Flat tensor inputs of each example.
        names: Node names to observe; None observes all inputs and ops.
        choice: How a range follows from the values; None: from the smallest to the largest.
        grid_of: Node name -> the grid that its value gets.
        reporter: Hears of every example.

    Returns: Node name -> range; names whose value is no floating-point tensor, or empty, or was not finite in some
        example, are left out.
    Raises: ValueError if a value is not finite where it must be (its name and example are said).
    """
    run = _ObservingRun(graph_module, names=names, choice=choice or RangeChoice())
    with torch.no_grad():
        for index, example in enumerate(examples):
            if reporter is not None:
                reporter.advance(index / len(examples), f"example {index + 1} of {len(examples)}")
            run.example_index = index
            run.run(*[leaf.clone() for leaf in example])
    return {name: observer.range(grid_of(name)) for name, observer in run.observers.items() if name not in run.infinite}


class _ObservingRun(fx.Interpreter):
    """Runs a graph and shows every value to its observer."""

    def __init__(self, graph_module: fx.GraphModule, *, names: Collection[str] | None, choice: RangeChoice) -> None:
        super().__init__(graph_module)
        self._names = None if names is None else frozenset(names)
        self._choice = choice
        self.example_index = 0
        self.observers: dict[str, ValueObserver] = {}
        self.infinite: set[str] = set()
        """Names of the values that were not finite."""

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; the name of the argument is the base class's."""
        result = super().run_node(n)
        is_wanted = n.op in {"placeholder", "call_function"} and (self._names is None or n.name in self._names)
        if is_wanted and isinstance(result, Tensor) and result.is_floating_point() and result.numel():
            if bool(result.isfinite().all()):
                self.observers.setdefault(n.name, ValueObserver(self._choice)).update(result)
            else:
                self.infinite.add(n.name)
                problem = _why_it_must_be_finite(n, result)
                if problem:
                    raise ValueError(f"{n.name} is not finite in example {self.example_index + 1}, and {problem}")
        return result


def _why_it_must_be_finite(node: fx.Node, value: Tensor) -> str:
    """Why a value that is not finite cannot be right here; empty if it can, as in a mask."""
    if op_role(str(node.target)) is not None:
        return "a product gives it"
    for reader in node.users:
        role = op_role(str(reader.target))
        if role is not None and node in (reader.args[role.data], reader.args[role.weight]):
            return f"{reader.name} multiplies by it"
        if reader.op == "output" and bool(value.isnan().any()):
            return "the model gives it"
    return ""
