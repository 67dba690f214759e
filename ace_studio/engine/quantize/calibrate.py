"""The ranges that values of a graph take over the calibration examples, found by running the graph op by op."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.progress import Reporter

SAMPLED_VALUES = 1 << 16
"""At most so many values of a tensor are sorted for a percentile; they are taken at even distances."""


@dataclass(frozen=True)
class ValueRange:
    """The range of one value over all examples, in the value's own unit."""

    low: float
    high: float
    examples: int
    """How many examples it was seen in."""

    def joined(self, other: ValueRange) -> ValueRange:
        """The range that covers both."""
        return ValueRange(min(self.low, other.low), max(self.high, other.high), self.examples + other.examples)


def observe_ranges(
    graph_module: fx.GraphModule,
    examples: Sequence[Sequence[Tensor]],
    *,
    names: Collection[str] | None = None,
    percentile: float = 100.0,
    reporter: Reporter | None = None,
) -> dict[str, ValueRange]:
    """Range of every floating-point value over the examples.

    At a percentile of 100 the range holds every value seen. Below it, each example's range holds the middle
    ``percentile`` percent of its values (rare outliers are cut off, evenly on both sides; with more than 65,536
    values, of an even sample of them), and the widest of these ranges counts.

    Args:
        graph_module: A `flat_graph`; it is not changed.
        examples: Flat tensor inputs of each example.
        names: Node names to observe; None observes all inputs and ops.
        percentile: In (50, 100].
        reporter: Hears of every example.

    Returns: Node name -> range; names whose value is no floating-point tensor, or empty, are left out.
    Raises: ValueError if the percentile is out of range or a value is not finite (its name and example are said).
    """
    if not 50.0 < percentile <= 100.0:
        raise ValueError(f"a percentile of {percentile} is not in (50, 100]")
    observer = _Observer(graph_module, names=names, percentile=percentile)
    with torch.no_grad():
        for index, example in enumerate(examples):
            if reporter is not None:
                reporter.advance(index / len(examples), f"example {index + 1} of {len(examples)}")
            observer.example_index = index
            observer.run(*example)
    return observer.ranges


class _Observer(fx.Interpreter):
    """Runs a graph and widens the range of every value it sees."""

    def __init__(self, graph_module: fx.GraphModule, *, names: Collection[str] | None, percentile: float) -> None:
        super().__init__(graph_module)
        self._names = None if names is None else frozenset(names)
        self._percentile = percentile
        self.example_index = 0
        self.ranges: dict[str, ValueRange] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; the name of the argument is the base class's."""
        result = super().run_node(n)
        is_wanted = n.op in {"placeholder", "call_function"} and (self._names is None or n.name in self._names)
        if is_wanted and isinstance(result, Tensor) and result.is_floating_point() and result.numel():
            seen = self._range_of(n.name, result.detach().float().flatten())
            known = self.ranges.get(n.name)
            self.ranges[n.name] = seen if known is None else known.joined(seen)
        return result

    def _range_of(self, name: str, values: Tensor) -> ValueRange:
        low, high = values.aminmax()
        if not bool(low.isfinite() & high.isfinite()):
            raise ValueError(f"{name} is not finite in example {self.example_index + 1}")
        if self._percentile < 100.0:
            step = -(-values.numel() // SAMPLED_VALUES)
            tail = (100.0 - self._percentile) / 200.0
            low, high = values[::step].quantile(torch.tensor([tail, 1.0 - tail], device=values.device))
        return ValueRange(float(low), float(high), 1)
