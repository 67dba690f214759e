"""Times every node of a graph in eager torch: median over several rounds."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

MAX_ROUNDS = 15
LIMIT_S = 2.0
"""Seconds after which no further round is begun."""
_MIN_ROUNDS = 3


class TimedRun(fx.Interpreter):
    """Runs a graph and times each node's call, without the cost of the interpreter."""

    def __init__(self, graph_module: fx.GraphModule, *, wait: Callable[[], object] = lambda: None) -> None:
        super().__init__(graph_module)
        self.times_ms: dict[str, list[float]] = {}
        self._wait = wait
        self._name = ""

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        self._name = n.name
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Time one call."""
        started = time.perf_counter_ns()
        result = super().call_function(target, args, kwargs)
        self._wait()
        self.times_ms.setdefault(self._name, []).append((time.perf_counter_ns() - started) / 1e6)
        return result


def time_nodes(
    graph_module: fx.GraphModule, example: Sequence[Tensor], *, check: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Name of every call of the graph -> median of its time, ms.

    Args:
        graph_module: A graph over flat tensors.
        example: Its inputs; each round gets copies, in case the graph writes into them.
        check: Called between rounds; may raise to cancel.
    """
    device = example[0].device if example else torch.device("cpu")
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    runner = TimedRun(graph_module, wait=wait)
    with torch.no_grad():
        runner.run(*[one.clone() for one in example])
        runner.times_ms.clear()
        started, rounds = time.monotonic(), 0
        while rounds < MAX_ROUNDS and (time.monotonic() - started < LIMIT_S or rounds < _MIN_ROUNDS):
            check()
            runner.run(*[one.clone() for one in example])
            rounds += 1
    return {name: statistics.median(times) for name, times in runner.times_ms.items()}
