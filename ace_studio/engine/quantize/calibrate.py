"""Calibration: the range of every value of a graph over the calibration examples."""

from collections.abc import Callable, Sequence

from torch import Tensor, fx

from ace_studio.engine.ops.roles import op_role
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.observers import RangeChoice, ValueObservers, ValueRange
from ace_studio.engine.quantize.visit import visit_values
from ace_studio.records.recipes.plan import ActivationGrid


def observe_ranges(
    graph_module: fx.GraphModule,
    examples: Sequence[Sequence[Tensor]],
    *,
    choice: RangeChoice | None = None,
    grid_of: Callable[[str], ActivationGrid] = lambda _: ActivationGrid.AFFINE,
    reporter: Reporter | None = None,
) -> dict[str, ValueRange]:
    """Range of every floating-point value over the examples.

    Values that are not finite have no range: a mask of minus infinity needs no grid. Where a product reads or gives
    such a value, or an output of the graph holds NaN, that is an error.

    Args:
        graph_module: A `flat_graph`; it is not changed.
        examples: Flat tensor inputs of each example.
        choice: How a range follows from the values; None: from the smallest to the largest.
        grid_of: Node name -> the grid that its value gets.
        reporter: Gets the progress.

    Returns: Node name -> range; names whose value is no floating-point tensor, or empty, or was not finite in some
        example, are left out.
    Raises: ValueError, with the node and the example, if a value is not finite where it must be.
    """
    observers = ValueObservers(choice or RangeChoice())

    def see(node: fx.Node, value: Tensor) -> None:
        if node.op not in {"placeholder", "call_function"} or not value.is_floating_point():
            return
        if not observers.see(node.name, value) and (problem := _why_it_must_be_finite(node, value)):
            raise ValueError(f"{node.name} is not finite in example {index + 1}, and {problem}")

    for index, example in enumerate(examples):
        if reporter is not None:
            reporter.advance(index / len(examples), f"example {index + 1} of {len(examples)}")
        visit_values(graph_module, [example], see)
    if reporter is not None:  # a search for the best ranges can take longer than all examples
        reporter.advance(None, "ranges of the values")
    return observers.ranges(grid_of)


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
