"""Running a graph op by op to look at the values on the way."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx


class VisitingRun(fx.Interpreter):
    """Runs a graph and calls ``visit(node, value)`` for every node that gives a tensor."""

    def __init__(self, graph_module: fx.GraphModule, visit: Callable[[fx.Node, Tensor], None]) -> None:
        super().__init__(graph_module)
        self._visit = visit

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; the name of the argument is the base class's."""
        result = super().run_node(n)
        if isinstance(result, Tensor):
            self._visit(n, result)
        return result


def visit_values(
    graph_module: fx.GraphModule, examples: Sequence[Sequence[Tensor]], visit: Callable[[fx.Node, Tensor], None]
) -> None:
    """Run the examples (flat tensor inputs) without gradients; ``visit`` must copy what it keeps."""
    run = VisitingRun(graph_module, visit)
    with torch.no_grad():
        for example in examples:
            run.run(*[leaf.clone() for leaf in example])
