"""How many of the most sensitive ops stay at a high precision, found in few evaluations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate

from ace_studio.engine.quantize.fidelity import decibels

MOST_EVALUATIONS = 8
"""Per ranking; the best result until then counts."""
SMALL_COST_SHARE = 0.03
"""Two counts whose ops differ by less than this share of the cost count as equal."""
_CLEAR_DB = 1.0
"""A count is not built if its predicted fidelity is this far below the required one."""
_FIRST_GAIN_DB = 10.0
"""Where the fidelity that a metric needs is unknown, the first guess leaves a tenth of the noise, the next a hundredth
of that."""


@dataclass(frozen=True)
class Evaluation:
    """The result of one count of high ops."""

    is_accurate: bool
    """More high ops make that likelier."""
    is_affordable: bool = True
    """Whether it is small and fast enough. More high ops make that less likely."""
    sqnr_db: float | None = None
    ends: bool = False
    """Whether the search of this ranking stops: the build failed, or another candidate beats the whole ranking."""


_Evaluate = Callable[[int], Evaluation]


def fewest_high(
    ranking: SensitivityRanking, evaluate: _Evaluate, *, min_db: float | None = None, limit: int = MOST_EVALUATIONS
) -> int | None:
    """The smallest accurate count found; None if even all ops high are not accurate, or the search ended before.

    Args:
        ranking: The ops, the most sensitive first.
        evaluate: Builds and judges a count.
        min_db: Fidelity that the goal requires; None if it bounds a metric, whose relation to fidelity is unknown.
        limit: Evaluations at most.
    """
    search = _Fewest(ranking, min_db)
    for number in range(limit):
        count = search.next_count(is_last_chance=number == limit - 1 and search.high is None)
        if count is None:
            break
        evaluation = evaluate(count)
        if evaluation.ends:
            break
        search.learn(count, evaluation)
    return search.high


class _Fewest:
    """Bisection between ``low`` (not accurate) and ``high`` (accurate)."""

    def __init__(self, ranking: SensitivityRanking, min_db: float | None) -> None:
        self._ranking = ranking
        self._min_db = min_db
        self._offset_db = 0.0
        """Measured minus predicted fidelity of the last build."""
        self._gain_db = _FIRST_GAIN_DB
        self.low = -1
        self.high: int | None = None

    def learn(self, count: int, evaluation: Evaluation) -> None:
        if evaluation.is_accurate:
            self.high = count if self.high is None else min(self.high, count)
        else:
            self.low = max(self.low, count)
        if evaluation.sqnr_db is not None and count < len(self._ranking):
            self._offset_db = min(30.0, max(-30.0, evaluation.sqnr_db - self._ranking.predicted_db(count)))

    def next_count(self, *, is_last_chance: bool) -> int | None:
        everything = len(self._ranking)
        if self.high is None:
            if self.low >= everything:
                return None
            if self.low < 0:
                return 0
            return everything if is_last_chance else min(everything, max(self.low + 1, self._guess()))
        low = max(self.low, self._last_hopeless())
        if self.high - low <= 1 or self._ranking.cost_share(low + 1, self.high) < SMALL_COST_SHARE:
            return None
        if self._min_db is not None:
            return min(self.high - 1, max(low + 1, self._guess()))
        return self._ranking.between(low, self.high)

    def _last_hopeless(self) -> int:
        """The largest count whose prediction clearly misses the required fidelity; -1 if none or unknown."""
        if self._min_db is None:
            return -1
        return self._ranking.first_above(self._min_db - self._offset_db - _CLEAR_DB) - 1

    def _guess(self) -> int:
        if self._min_db is not None:
            return self._ranking.first_above(self._min_db - self._offset_db)
        target_db = self._ranking.predicted_db(self.low) + self._gain_db
        self._gain_db *= 2.0
        return self._ranking.first_above(target_db)


def most_high(ranking: SensitivityRanking, evaluate: _Evaluate, *, limit: int = MOST_EVALUATIONS) -> int | None:
    """The largest affordable count found; None if not even 0 is affordable."""
    low, high = -1, len(ranking) + 1  # affordable, not affordable
    first = [len(ranking), 0]
    for _ in range(limit):
        count = first.pop(0) if first else (low + high) // 2
        evaluation = evaluate(count)
        if evaluation.ends:
            break
        if evaluation.is_affordable:
            low = max(low, count)
        else:
            high = min(high, count)
        if high - low <= 1:
            break
        if low >= 0 and ranking.cost_share(low, min(high, len(ranking))) < SMALL_COST_SHARE:
            break
    return low if low >= 0 else None


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
