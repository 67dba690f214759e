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

    The range is that of the finite elements. A value that holds infinity, such as a mask, has none unless a product
    reads or gives it.

    Args:
        graph_module: A `flat_graph`; it is not changed.
        examples: Flat tensor inputs of each example.
        choice: How a range follows from the values; None: from the smallest to the largest.
        grid_of: Node name -> the grid that its value gets.
        reporter: Gets the progress.

    Returns: Node name -> range; names whose value is no floating-point tensor, or had no finite element in any example,
        are left out.
    """
    observers = ValueObservers(choice or RangeChoice())

    def see(node: fx.Node, value: Tensor) -> None:
        if node.op in {"placeholder", "call_function"} and value.is_floating_point():
            observers.see(node.name, value, is_of_product=_is_of_product(node))

    for index, example in enumerate(examples):
        if reporter is not None:
            reporter.advance(index / len(examples), f"example {index + 1} of {len(examples)}")
        visit_values(graph_module, [example], see)
    if reporter is not None:  # a search for the best ranges can take longer than all examples
        reporter.advance(None, "ranges of the values")
    return observers.ranges(grid_of)


def _is_of_product(node: fx.Node) -> bool:
    """Whether a product gives the value, or reads it as a factor."""
    if op_role(str(node.target)) is not None:
        return True
    readers = [(reader, role) for reader in node.users if (role := op_role(str(reader.target))) is not None]
    return any(node in (reader.args[role.data], reader.args[role.weight]) for reader, role in readers)
