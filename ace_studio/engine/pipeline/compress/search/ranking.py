"""Ops ranked by sensitivity: the k most sensitive ones stay at a high precision, for k from none to all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from ace_studio.engine.quantize.fidelity import decibels


@dataclass(frozen=True)
class RankedOp:
    """One op that can run at a low or a high precision."""

    op_id: str
    noise: float
    """Noise power that it adds to the outputs at the low precision, relative to their signal."""
    cost: float = 1.0
    """Cost in time or bytes, in any unit that all ops share."""


class SensitivityRanking:
    """The ops, the most sensitive first. Their noises nearly add up, which predicts a fidelity for each count.

    Source: Widrow and Kollar 2008, Quantization Noise, chapter 5 (noises of different quantizers are uncorrelated).
    """

    def __init__(self, ops: Iterable[RankedOp]) -> None:
        self.ops = sorted(ops, key=lambda op: (-op.noise, op.cost))
        self._noise_left = [*accumulate((op.noise for op in reversed(self.ops)), initial=0.0)][::-1]
        self._costs = [*accumulate((op.cost for op in self.ops), initial=0.0)]

    def __len__(self) -> int:
        return len(self.ops)

    def predicted_db(self, count: int) -> float:
        """Fidelity of the outputs with the first ``count`` ops high, dB in [-200, 200]; high ops count as exact."""
        return decibels(1.0, self._noise_left[count])

    def first_above(self, min_db: float) -> int:
        """The smallest count with at least this predicted fidelity."""
        return next((count for count in range(len(self) + 1) if self.predicted_db(count) >= min_db), len(self))

    def between(self, low: int, high: int) -> int:
        """The count strictly between two others whose predicted fidelity is nearest to the middle of theirs."""
        middle = (self.predicted_db(low) + min(self.predicted_db(high), self.predicted_db(low) + 60.0)) / 2.0
        return min(range(low + 1, high), key=lambda count: abs(self.predicted_db(count) - middle))

    def cost_share(self, low: int, high: int) -> float:
        """Share of the cost of all ops that lies between two counts, 0..1."""
        return (self._costs[high] - self._costs[low]) / self._costs[-1] if self._costs[-1] else 0.0
