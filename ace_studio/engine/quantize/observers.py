"""Observers: ranges of values over the calibration examples, the same for all targets, so that results agree.

Apart from min-max, the choice is made on a histogram of the values. It is kept in one pass: bins lie symmetrically
around 0, and when a value does not fit, the bound doubles and bins are merged in pairs, so nothing is estimated anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.torch_private.operators import Operator
from ace_studio.records.recipes.plan import ActivationGrid
from ace_studio.records.recipes.recipe import Observer

BINS_PER_SIDE = 1 << 14
"""Bins on each side of 0; one integer of an 8-bit grid over all that was seen spans 32 of them or more."""
SAMPLED_VALUES = 1 << 18
"""At most so many values of one tensor go into the histogram; they are taken at even distances."""
UNSEEN = "what it reads or gives had no finite element in any calibration example, so its range is not known"
"""Why an op stays float."""
_LEVELS = 256
_SMALLEST_SHARE = 0.1
"""The narrowest range that is tried, as a share of the widest."""
_TRIED = 46
"""How many widths are tried from the widest to the narrowest."""


@dataclass(frozen=True)
class ValueRange:
    """The range of one value over all examples, in the value's own unit."""

    low: float
    high: float
    examples: int
    """How many examples it was seen in."""

    @property
    def symmetric(self) -> ValueRange:
        """The smallest range around 0 that covers it."""
        bound = max(abs(self.low), abs(self.high))
        return ValueRange(-bound, bound, self.examples)


@dataclass(frozen=True)
class RangeChoice:
    """Which observer finds ranges, and its parameter."""

    observer: Observer = Observer.MIN_MAX
    percentile: float = 99.99
    """In (50, 100]; of the percentile observer."""

    def __post_init__(self) -> None:
        if not 50.0 < self.percentile <= 100.0:
            raise ValueError(f"a percentile of {self.percentile} is not in (50, 100]")


class ValueObserver:
    """Collects one value over all examples and gives its range."""

    def __init__(self, choice: RangeChoice) -> None:
        self._choice = choice
        self._low, self._high = math.inf, -math.inf
        self._examples = 0
        self._bound = 0.0
        """The histogram covers [-bound, bound]; a power of two, 0 before anything but zeros was seen."""
        self._counts = torch.zeros(2 * BINS_PER_SIDE, dtype=torch.float64)

    def update(self, values: Tensor) -> None:
        """See the finite elements of one tensor (any shape); nothing happens if there are none."""
        flat = values.detach().float().flatten()
        flat = flat if bool(flat.isfinite().all()) else flat[flat.isfinite()]
        if not flat.numel():
            return
        low, high = (float(bound) for bound in flat.aminmax())
        self._low, self._high = min(self._low, low), max(self._high, high)
        self._examples += 1
        if self._choice.observer is Observer.MIN_MAX:
            return
        self._grow(max(abs(low), abs(high)))
        if self._bound:
            sampled = flat[:: -(-flat.numel() // SAMPLED_VALUES)].cpu()
            if self._choice.observer in _LOSSES:  # 0 lies on every grid; behind a ReLU it would outweigh the rest
                sampled = sampled[sampled != 0.0]
            # Wide: the bound of the most negative float32, with which models mask, is 2^128.
            self._counts += torch.histc(sampled.double(), 2 * BINS_PER_SIDE, -self._bound, self._bound)

    @property
    def has_range(self) -> bool:
        """Whether any finite element was seen."""
        return self._examples > 0

    @property
    def seen(self) -> ValueRange:
        """From the smallest to the largest value, whatever the choice. Raises: ValueError if nothing was seen."""
        if not self._examples:
            raise ValueError("nothing was observed")
        return ValueRange(self._low, self._high, self._examples)

    def range(self, grid: ActivationGrid = ActivationGrid.AFFINE) -> ValueRange:
        """The range for 8 bits on this kind of grid; within what was seen, or for a symmetric grid around 0.

        Raises: ValueError if nothing was seen.
        """
        seen = self.seen.symmetric if grid is ActivationGrid.SYMMETRIC else self.seen
        if self._choice.observer is Observer.MIN_MAX or not self._bound:
            return seen
        if self._choice.observer is Observer.PERCENTILE:
            return self._percentile_range(seen)
        return self._best_range(seen, _LOSSES[self._choice.observer])

    def _grow(self, needed: float) -> None:
        """Double the bound until it holds ``needed``, and merge bins accordingly."""
        if needed == 0.0 or needed <= self._bound:
            return
        wanted = 2.0 ** math.ceil(math.log2(needed)) if needed > 2.0**-120 else 2.0**-120
        if self._bound == 0.0:
            self._bound = wanted
        while self._bound < wanted:
            merged = self._counts.reshape(-1, 2).sum(1)
            self._counts = torch.zeros_like(self._counts)
            self._counts[BINS_PER_SIDE // 2 : BINS_PER_SIDE // 2 + BINS_PER_SIDE] = merged
            self._bound *= 2.0

    def _centres(self) -> Tensor:
        width = self._bound / BINS_PER_SIDE
        return (torch.arange(2 * BINS_PER_SIDE, dtype=torch.float64) + 0.5) * width - self._bound

    def _percentile_range(self, seen: ValueRange) -> ValueRange:
        """Cut the same share off both ends; of a symmetric grid, off the absolute values."""
        tail = (100.0 - self._choice.percentile) / 100.0
        centres, half = self._centres(), self._bound / BINS_PER_SIDE / 2
        if seen.low == -seen.high:
            sides = self._counts[BINS_PER_SIDE:] + self._counts[:BINS_PER_SIDE].flip(0)
            bound = _quantile(sides, centres[BINS_PER_SIDE:] + half, 1.0 - tail)
            bound = min(bound, seen.high)
            return ValueRange(-bound, bound, seen.examples)
        high = _quantile(self._counts, centres + half, 1.0 - tail / 2)
        low = -_quantile(self._counts.flip(0), -(centres.flip(0) - half), 1.0 - tail / 2)
        low, high = max(low, seen.low), min(high, seen.high)
        return ValueRange(min(low, high), high, seen.examples)

    def _best_range(self, seen: ValueRange, loss: Callable[[Tensor, Tensor, float, float], float]) -> ValueRange:
        """Shrink both ends together, then each end alone, to where the loss is smallest."""
        used = self._counts > 0
        counts, centres = self._counts[used], self._centres()[used]
        shares = [1.0 - index * (1.0 - _SMALLEST_SHARE) / (_TRIED - 1) for index in range(_TRIED)]

        def cost(share_low: float, share_high: float) -> float:
            low, high = min(seen.low * share_low, 0.0), max(seen.high * share_high, 0.0)
            return loss(counts, centres, low, high)

        both = min(shares, key=lambda share: cost(share, share))
        low_share = high_share = both
        if seen.low != -seen.high and seen.low < 0.0 < seen.high:
            low_share = min(shares, key=lambda share: cost(share, high_share))
            high_share = min(shares, key=lambda share: cost(low_share, share))
        return ValueRange(seen.low * low_share, seen.high * high_share, seen.examples)


class ValueObservers:
    """Observers of values by name. The range is that of the finite elements; NaN has no place on any grid."""

    def __init__(self, choice: RangeChoice) -> None:
        self._choice = choice
        self._observers: dict[str, ValueObserver] = {}
        self.masks: set[str] = set()
        """Names of the values that held infinity and that no product reads or gives; they have no range."""
        self.broken: set[str] = set()
        """Names of the values that were not finite throughout."""

    @property
    def shown(self) -> Collection[str]:
        """Names of all values that were seen, also of those without a range."""
        return self._observers.keys()

    def see(self, name: str, value: Tensor, *, is_of_product: bool = False) -> None:
        """See a floating-point tensor; infinity in one that no product reads or gives is a mask's."""
        if not bool(value.isfinite().all()):
            self.broken.add(name)
            if not is_of_product and bool(value.isinf().any()):
                self.masks.add(name)
        self._observers.setdefault(name, ValueObserver(self._choice)).update(value)

    def seen(self) -> dict[str, ValueRange]:
        """Name -> from the smallest to the largest finite element, whatever the choice."""
        return {name: one.seen for name, one in self._observers.items() if one.has_range and name not in self.masks}

    def ranges(self, grid_of: Callable[[str], ActivationGrid]) -> dict[str, ValueRange]:
        """Name -> range for the kind of grid that ``grid_of`` gives the name."""
        return {name: self._observers[name].range(grid_of(name)) for name in self.seen()}


def _quantile(counts: Tensor, upper_edges: Tensor, share: float) -> float:
    """The edge below which at least ``share`` of all counts lie."""
    below = counts.cumsum(0)
    index = int(torch.searchsorted(below, below[-1] * share))
    return float(upper_edges[min(index, len(upper_edges) - 1)])


def squared_error(counts: Tensor, centres: Tensor, low: float, high: float) -> float:
    """Sum of squared errors of an affine 8-bit grid over [low, high], clipping included.

    Shapes: counts, centres [bins]. Source: Nagel et al. 2021, arXiv:2106.08295, section 3.1.
    """
    scale = (high - low) / (_LEVELS - 1)
    if scale <= 0.0:
        return math.inf
    zero = round(-low / scale)
    rounded = ((centres / scale).round() + zero).clamp(0, _LEVELS - 1).sub(zero).mul(scale)
    return float((counts * (centres - rounded).square()).sum())


def divergence(counts: Tensor, centres: Tensor, low: float, high: float) -> float:
    """Kullback-Leibler divergence of the values, clipped to [low, high], from what an 8-bit grid leaves of them.

    What is clipped is counted at the ends in the reference and not at all in the grid's, so clipping costs; inside a
    level the grid's mass is spread evenly over the bins that are not empty.
    Shapes: counts, centres [bins]. Source: Migacz 2017, 8-bit inference with TensorRT, GTC 2017.
    """
    scale = (high - low) / (_LEVELS - 1)
    inside = (centres >= low - scale / 2) & (centres <= high + scale / 2)
    if scale <= 0.0 or not bool(inside.any()):
        return math.inf
    reference = counts[inside].clone()
    kept = counts[inside]
    ordered = centres[inside]
    reference[0] += counts[centres < ordered[0]].sum()
    reference[-1] += counts[centres > ordered[-1]].sum()
    level = ((ordered - low) / scale).round().clamp(0, _LEVELS - 1).long()
    mass = torch.zeros(_LEVELS, dtype=torch.float64).index_add_(0, level, kept)
    bins = torch.zeros(_LEVELS, dtype=torch.float64).index_add_(0, level, torch.ones_like(kept))
    spread = mass[level] / bins[level]
    first, second = reference / reference.sum(), spread / spread.sum()
    return float((first * (first / second).log()).sum())


_LOSSES: dict[Observer, Callable[[Tensor, Tensor, float, float], float]] = {
    Observer.MSE: squared_error,
    Observer.ENTROPY: divergence,
}


_aten = torch.ops.aten


def write_out_range_searches(graph_module: fx.GraphModule) -> int:
    """Replace every ``choose_qparams`` by plain operators that compute the same grid as eager does, in place.

    Inductor (torch 2.11 to 2.13) decomposes it without widening the range to 0: an input that is positive throughout
    is then clipped (measured: 59 dB in eager, 22 dB compiled). The grid is that of `affine.affine_grid`, unsigned.

    Returns: How many were replaced.
    """
    searches = [node for node in graph_module.graph.nodes if "choose_qparams.tensor" in str(node.target)]
    for node in searches:
        x, first, last, smallest_scale = node.args[:4]
        low = _call(node, _aten.clamp_max.default, _call(node, _aten.amin.default, x), 0.0)
        high = _call(node, _aten.clamp_min.default, _call(node, _aten.amax.default, x), 0.0)
        width = _call(node, _aten.sub.Tensor, high, low)
        scale = _call(node, _aten.div.Tensor, width, float(last - first))
        scale = _call(node, _aten.clamp_min.default, scale, smallest_scale)
        lowest = _call(node, _aten.round.default, _call(node, _aten.div.Tensor, low, scale))
        zero = _call(node, _aten.clamp.default, _call(node, _aten.rsub.Scalar, lowest, first), first, last)
        parts = (_call(node, _aten.to.dtype, scale, torch.float64), _call(node, _aten.to.dtype, zero, torch.int64))
        for user in list(node.users):  # each takes one of the two parts
            user.replace_all_uses_with(parts[user.args[1]])
            graph_module.graph.erase_node(user)
        graph_module.graph.erase_node(node)
    graph_module.recompile()
    return len(searches)


def _call(before: fx.Node, target: Operator, *arguments: Any) -> fx.Node:
    with before.graph.inserting_before(before):
        return before.graph.call_function(target, arguments)
