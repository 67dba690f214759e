"""The next step of the ranking to evaluate, given what the ones before have shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ace_studio.engine.pipeline.compress.search.ranking import SensitivityRanking

MOST_EVALUATIONS = 8
"""Of one ranking; what was found until then counts."""
SMALL_SHARE = 0.03
"""Two steps whose ops differ by less than this share of the cost are as good as one."""
_FIRST_GAIN_DB = 10.0
"""Where nothing says which fidelity a metric needs: the first guess leaves a tenth of the noise, the next a hundredth
of that."""


@dataclass(frozen=True)
class Point:
    """What was found at one step."""

    keeps: bool
    """Whether it is accurate enough. More high ops make that likelier."""
    affords: bool = True
    """Whether it is small and fast enough. More high ops make that less likely."""
    sqnr_db: float | None = None
    ends: bool = False
    """Whether there is no use in going on: it could not be built, or another candidate has beaten the whole ranking."""


_CLEAR_DB = 1.0
"""A step foretold to be so much below what is wanted is not built to see whether it is."""

Evaluate = Callable[[int], Point]


def fewest_high(
    ranking: SensitivityRanking, evaluate: Evaluate, *, wanted_db: float | None = None, limit: int = MOST_EVALUATIONS
) -> int | None:
    """The smallest step found that is accurate enough; None if the last one is not, or the search ended before.

    Args:
        ranking: The ops, the most sensitive first.
        evaluate: Builds a step and says what came of it; called at most ``limit`` times.
        wanted_db: Fidelity that the goal asks for; None if it asks for a metric: who knows which fidelity that needs.
        limit: Evaluations at most.
    """
    search = _Fewest(ranking, wanted_db)
    for number in range(limit):
        step = search.next_step(is_last_chance=number == limit - 1 and search.high is None)
        if step is None:
            break
        point = evaluate(step)
        if point.ends:
            break
        search.learn(step, point)
    return search.high


class _Fewest:
    """Between ``low`` (not accurate enough) and ``high`` (accurate enough)."""

    def __init__(self, ranking: SensitivityRanking, wanted_db: float | None) -> None:
        self._ladder = ranking
        self._wanted_db = wanted_db
        self._offset_db = 0.0
        """How much better the last built step was than foretold."""
        self._gain_db = _FIRST_GAIN_DB
        self.low = -1
        self.high: int | None = None

    def learn(self, step: int, point: Point) -> None:
        if point.keeps:
            self.high = step if self.high is None else min(self.high, step)
        else:
            self.low = max(self.low, step)
        if point.sqnr_db is not None and step < len(self._ladder):
            self._offset_db = min(30.0, max(-30.0, point.sqnr_db - self._ladder.predicted_db(step)))

    def next_step(self, *, is_last_chance: bool) -> int | None:
        last = len(self._ladder)
        if self.high is None:
            if self.low >= last:
                return None
            if self.low < 0:
                return 0
            return last if is_last_chance else min(last, max(self.low + 1, self._guess()))
        low = max(self.low, self._hopeless())
        if self.high - low <= 1 or self._ladder.cost_share(low + 1, self.high) < SMALL_SHARE:
            return None
        if self._wanted_db is not None:
            return min(self.high - 1, max(low + 1, self._guess()))
        return self._ladder.between(low, self.high)

    def _hopeless(self) -> int:
        """The last step that is foretold to miss a fidelity clearly; nothing is known of a metric."""
        if self._wanted_db is None:
            return -1
        return self._ladder.first_above(self._wanted_db - self._offset_db - _CLEAR_DB) - 1

    def _guess(self) -> int:
        if self._wanted_db is not None:
            return self._ladder.first_above(self._wanted_db - self._offset_db)
        wanted = self._ladder.predicted_db(self.low) + self._gain_db
        self._gain_db *= 2.0
        return self._ladder.first_above(wanted)


def most_high(ranking: SensitivityRanking, evaluate: Evaluate, *, limit: int = MOST_EVALUATIONS) -> int | None:
    """The largest step found that is small and fast enough; None if not even the first is.

    Args:
        ranking: The ops, the most sensitive first.
        evaluate: As for `fewest_high`.
        limit: Evaluations at most.
    """
    low, high = -1, len(ranking) + 1  # affords; does not
    steps = [len(ranking), 0]
    for _ in range(limit):
        step = steps.pop(0) if steps else (low + high) // 2
        point = evaluate(step)
        if point.ends:
            break
        if point.affords:
            low = max(low, step)
        else:
            high = min(high, step)
        if (
            high == 0
            or high - low <= 1
            or (low >= 0 and ranking.cost_share(low, min(high, len(ranking))) < SMALL_SHARE)
        ):
            break
    return low if low >= 0 else None
