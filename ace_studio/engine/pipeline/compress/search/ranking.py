"""Plans between all low and all high: step k keeps the k most sensitive ops high."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_CAP_DB = 200.0


@dataclass(frozen=True)
class RankedOp:
    """One op that can be low or high."""

    op_id: str
    noise: float
    """Noise power that it adds to the outputs if it is low, relative to their signal."""
    cost: float = 1.0
    """What it costs in time or bytes, in any unit that all share."""


class SensitivityRanking:
    """The ops, the most sensitive first. Noise of different ops adds up nearly, so each step foretells a fidelity.

    Source: Widrow and Kollar 2008, Quantization Noise, chapter 5 (noises of different quantizers are uncorrelated).
    """

    def __init__(self, ranked: Iterable[RankedOp]) -> None:
        self.ranked = sorted(ranked, key=lambda op: (-op.noise, op.cost))
        self._left = [0.0]
        self._costs = [0.0]
        for op in reversed(self.ranked):
            self._left.append(self._left[-1] + op.noise)
        self._left.reverse()
        for op in self.ranked:
            self._costs.append(self._costs[-1] + op.cost)

    def __len__(self) -> int:
        return len(self.ranked)

    def kept(self, count: int) -> list[RankedOp]:
        """The ops that are high at this step."""
        return self.ranked[:count]

    def predicted_db(self, count: int) -> float:
        """Fidelity of the outputs with the first ``count`` ops high, dB in [-200, 200]; high ops count as exact."""
        noise = self._left[count]
        if noise <= 0.0:
            return _CAP_DB
        return max(-_CAP_DB, min(_CAP_DB, -10.0 * math.log10(noise))) if math.isfinite(noise) else -_CAP_DB

    def first_above(self, wanted_db: float) -> int:
        """The smallest step that promises at least this fidelity."""
        return next((count for count in range(len(self) + 1) if self.predicted_db(count) >= wanted_db), len(self))

    def between(self, low: int, high: int) -> int:
        """The step strictly between two others whose fidelity is nearest to the middle of theirs."""
        middle = (self.predicted_db(low) + min(self.predicted_db(high), self.predicted_db(low) + 60.0)) / 2.0
        return min(range(low + 1, high), key=lambda count: abs(self.predicted_db(count) - middle))

    def cost_share(self, low: int, high: int) -> float:
        """Share of the cost of all ops that lies between two steps, 0..1."""
        return (self._costs[high] - self._costs[low]) / self._costs[-1] if self._costs[-1] else 0.0
