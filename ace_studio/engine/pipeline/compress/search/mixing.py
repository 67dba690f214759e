"""Which mixtures are built: the integer program proposes one, its build corrects the program, until none promises more.

At first the builds with all ops at one precision are known. Where the goal bounds the fidelity, the program is asked
for what that leaves room for. Where it bounds a metric, whose relation to the fidelity nobody knows, the search halves
the distance between the fidelities of what was accurate and of what was not. A simulation says what fidelity a mixture
will have, where there is one; else the noises of its groups are added up.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ace_studio.engine.pipeline.compress.search.mixture import Least, Limits, Mixture, Solution
from ace_studio.engine.quantize.fidelity import decibels
from ace_studio.records.goals import WORTHWHILE

MOST_EVALUATIONS = 6
"""Mixtures that are built on a target; the best result until then counts."""
SMALL_GAIN = 0.03
"""A mixture is built only if it promises at least this share less than the best known one: timing notices no less."""
_FIRST_GAIN_DB = 10.0
"""Where a metric decides, the first guess leaves a tenth of the noise, the next a hundredth of that."""
_MOST_HALVINGS = 4
_MOST_OFFSET_DB = 30.0
_LEAST_SLOPE = 0.25
"""The next step counts on at least this much measured fidelity per predicted fidelity."""
_FAR_DB = 60.0
"""What is exact counts as this much better than the best inaccurate mixture."""
_MOST_DISAPPOINTMENTS = 1
"""Accurate mixtures in turn that were not better than the best known one: the program does not see why."""
_MOST_BORDER_CORRECTION = 30.0
_MOST_SIMULATIONS = 8
"""Mixtures that are simulated to find the next one to build."""
_MARGIN_DB = 0.1
"""So much more than the goal is asked for: what is expected to meet it exactly misses it half of the time."""
_CLOSE_DB = 0.2
"""A simulated mixture that is this little above what is asked for is not made faster by another simulation."""
FRONT_POINTS = 8
FRONT_DB = 60.0
"""The front reaches so far above the fidelity of the fastest mixture at most."""
FRONT_S = 10.0
"""Seconds after which no further point of the front is looked for; one takes about a second at 1,000 groups."""


@dataclass(frozen=True)
class Evaluation:
    """What the build of a mixture showed."""

    is_accurate: bool
    is_affordable: bool = True
    """Whether it is small and fast enough."""
    sqnr_db: float | None = None
    time: float | None = None
    """Share of the baseline's latency."""
    bytes: float | None = None
    ends: bool = False
    """Whether the search on this target stops: the build failed, or another candidate beats whatever it can find."""

    def figure(self, least: Least) -> float:
        """What is to be small; infinite if unknown."""
        noise = None if self.sqnr_db is None else 10.0 ** (-self.sqnr_db / 10.0)
        found = {Least.TIME: self.time, Least.BYTES: self.bytes, Least.NOISE: noise}[least]
        return math.inf if found is None else found


@dataclass(frozen=True)
class Lesson:
    """What the builds said of the program's figures."""

    mixture: Mixture
    offset_db: float = 0.0
    """Measured minus predicted fidelity."""
    time: float = 1.0
    """Measured over predicted; so are the bytes."""
    bytes: float = 1.0
    built: frozenset[tuple[int, ...]] = frozenset()
    """The mixtures that were built."""


Chosen = tuple[int, ...]
"""The choice of every group."""
Known = Mapping[Chosen, Evaluation]
"""What the build of a mixture showed."""


def find_mixtures(  # noqa: PLR0913 - what is known, what is wanted, and two ways to find out more
    mixture: Mixture,
    known: Known,
    evaluate: Callable[[Solution], Evaluation],
    *,
    least: Least,
    limits: Limits,
    min_db: float | None = None,
    is_quick: bool = False,
    rival: float = math.inf,
    expected_db: Callable[[Chosen], float | None] = lambda _: None,
) -> Lesson:
    """Evaluate the mixtures that promise to be better than what is known; what their builds taught.

    Args:
        mixture: The figures of the groups.
        known: Builds with all ops at one precision.
        evaluate: Builds and judges a mixture.
        least: What the goal wants little of.
        limits: Bounds of the goal on time and bytes; its noise is not read.
        min_db: Fidelity that the goal requires; None if it bounds a metric or nothing.
        is_quick: Whether a build costs so little that one is made which promises no time, only that fewer groups are
            low: those for which it does not pay.
        rival: The least figure among the builds that meet the goal and are none of these mixtures.
        expected_db: The fidelity that the build of a mixture is expected to show, by simulation; None if nothing is
            known.
    """
    search = _Mixing(
        mixture,
        dict(known),
        least=least,
        limits=limits,
        min_db=min_db,
        is_quick=is_quick,
        rival=rival,
        expected_db=expected_db,
    )
    for _ in range(MOST_EVALUATIONS):
        solution = search.proposed()
        if solution is None:
            break
        evaluation = evaluate(solution)
        if evaluation.ends:
            break
        search.learn(solution, evaluation)
    return search.lesson()


def front_of(mixture: Mixture, least: Least) -> list[Solution]:
    """The mixtures with the least time (or bytes) at noises from that of the least of all to nearly none."""
    started = time.monotonic()
    quietest = min((one.noise for group in mixture.groups for one in group.choices if one.noise > 0.0), default=0.0)
    first = mixture.solve(least, Limits())
    if first is None or first.noise <= 0.0:
        return [] if first is None else [first]
    low = decibels(1.0, first.noise)
    reach = min(FRONT_DB, max(0.0, decibels(1.0, quietest) - low))
    found = {first.chosen: first}
    for at in range(1, FRONT_POINTS):
        if time.monotonic() - started > FRONT_S:
            break
        limit_db = low + reach * at / (FRONT_POINTS - 1)
        if (solution := mixture.solve(least, Limits(noise=10.0 ** (-limit_db / 10.0)))) is not None:
            found[solution.chosen] = solution
    return list(found.values())


class _Mixing:
    def __init__(
        self,
        mixture: Mixture,
        known: dict[Chosen, Evaluation],
        *,
        least: Least,
        limits: Limits,
        min_db: float | None,
        is_quick: bool,
        rival: float,
        expected_db: Callable[[Chosen], float | None],
    ) -> None:
        self._mixture = mixture
        self._known = known
        self._least = least
        self._limits = limits
        self._min_db = min_db
        self._rival = rival
        self._expected_db = expected_db
        self._tried_db: list[tuple[float, float]] = []
        """Predicted and measured fidelity of the mixtures that were built."""
        self._factors = {Least.TIME: 1.0, Least.BYTES: 1.0}
        """Measured over predicted figure of the last mixture."""
        self._gain_db = _FIRST_GAIN_DB
        self._asked_db: float | None = None
        """Predicted fidelity of the mixture that was simulated last."""
        self._disappointments = 0
        self._may_tidy = is_quick and least is Least.TIME

    def learn(self, solution: Solution, evaluation: Evaluation) -> None:
        """Correct the program by what a build showed."""
        best = self._best()
        self._known[solution.chosen] = evaluation
        is_better = best is None or evaluation.figure(self._least) < self._known[best].figure(self._least)
        if evaluation.is_accurate and evaluation.is_affordable:
            self._disappointments = 0 if is_better else self._disappointments + 1
        if evaluation.sqnr_db is not None and solution.noise > 0.0:
            self._tried_db.append((decibels(1.0, solution.noise), evaluation.sqnr_db))
        if evaluation.time is not None and solution.borders > 0.0:
            factor = 1.0 + (evaluation.time - solution.time) / solution.borders
            limited = min(_MOST_BORDER_CORRECTION, max(1.0 / _MOST_BORDER_CORRECTION, factor))
            self._mixture = self._mixture.corrected(borders=limited)
        predicted = self._mixture.of(solution.chosen)
        for least, measured in ((Least.TIME, evaluation.time), (Least.BYTES, evaluation.bytes)):
            if measured and predicted.figure(least) > 0.0:
                self._factors[least] = measured / predicted.figure(least)

    def lesson(self) -> Lesson:
        """What was learned so far."""
        times, size = self._factors[Least.TIME], self._factors[Least.BYTES]
        predicted_db, measured_db = self._tried_db[-1] if self._tried_db else (0.0, 0.0)
        offset_db = _within(_MOST_OFFSET_DB, measured_db - predicted_db)
        return Lesson(self._mixture, offset_db, times, size, frozenset(self._known))

    def proposed(self) -> Solution | None:
        """The mixture to build next; None if nothing new promises enough."""
        if self._disappointments >= _MOST_DISAPPOINTMENTS:
            return None
        if self._least is Least.NOISE:
            return self._new(self._solve(None))
        is_simulated = all(self._expected_db(at) is not None for at in self._known)
        if self._min_db is not None:
            if is_simulated:
                return self._worth_a_build(self._by_simulation(self._min_db))
            aimed = (self._worth_a_build(self._solve(10.0 ** (-db / 10.0))) for db in self._aims_db(self._min_db))
            return next((one for one in aimed if one is not None), None)
        return (
            self._halved(self._measured_db, self._by_simulation)
            if is_simulated
            else self._halved(self._predicted_db, lambda db: self._solve(10.0 ** (-db / 10.0)))
        )

    def _halved(
        self, fidelity_db: Callable[[Chosen], float], found_at: Callable[[float], Solution | None]
    ) -> Solution | None:
        """The next mixture between what was accurate and what was not, by fidelity in dB."""
        low, high = self._bounds_db(fidelity_db)
        if low is None:  # everything known is accurate: what is as noisy as the noisiest of it will be, too
            return None if high is None else self._worth_a_build(found_at(high))
        if high is None or high > low + _FAR_DB:
            high = low + 2.0 * self._gain_db
            self._gain_db *= 2.0
        for _ in range(_MOST_HALVINGS):
            high = (low + high) / 2.0
            if (found := self._promising(found_at(high))) is not None:
                return found
        return None

    def _by_simulation(self, needed_db: float) -> Solution | None:
        """The fastest new mixture that is expected to have what is needed, by a few simulations of what is asked for.

        The sum of the groups' noises says which mixtures are worth a simulation, not what they will have.
        """
        found: list[Solution] = []
        low, high, asked = -math.inf, math.inf, self._asked_db or needed_db
        for _ in range(_MOST_SIMULATIONS):
            solution = self._solve(10.0 ** (-asked / 10.0))
            expected = None if solution is None else self._expected_db(solution.chosen)
            if solution is None or expected is None:
                missing = -1.0  # more than there is was asked for
            else:
                missing = needed_db + _MARGIN_DB - expected
                if missing <= 0.0 and self._new(solution) is not None:
                    found.append(solution)
                if -_CLOSE_DB <= missing <= 0.0 or (missing > 0.0 and not self._is_promising(solution)):
                    break
            low, high = (max(low, asked), high) if missing > 0.0 else (low, min(high, asked))
            if high - low < _CLOSE_DB:
                break
            asked += max(missing, _CLOSE_DB) if missing > 0.0 else min(missing, -_CLOSE_DB)
            if not low < asked < high:
                asked = (low + high) / 2.0
        self._asked_db = asked
        return min(found, key=lambda one: one.figure(self._least), default=None)

    def _aims_db(self, needed_db: float) -> tuple[float, ...]:
        """Predicted fidelities that may let the next build have what is needed, the safest first.

        What the last build lacked is added to what was predicted for it. If the step to that build gained less than was
        asked for, as much more is asked for first: the ops that were made exact may not be those whose noise counts.
        """
        if not self._tried_db:
            return (needed_db,)
        predicted_db, measured_db = self._tried_db[-1]
        missing_db, slope = _within(_MOST_OFFSET_DB, needed_db - measured_db), 1.0
        if len(self._tried_db) > 1:
            before = self._tried_db[-2]
            asked_db, gained_db = predicted_db - before[0], measured_db - before[1]
            limits = (_LEAST_SLOPE, 1.0) if missing_db > 0.0 else (1.0, 1.0 / _LEAST_SLOPE)
            slope = min(max(gained_db / asked_db if asked_db else 1.0, limits[0]), limits[1])
        return (predicted_db + missing_db / slope, predicted_db + missing_db)

    def _solve(self, noise: float | None) -> Solution | None:
        """Within the goal's limits, which are corrected by what the last mixture showed."""
        time, size = self._limits.time, self._limits.bytes
        limits = Limits(
            noise=noise,
            time=None if time is None else time / self._factors[Least.TIME],
            bytes=None if size is None else size / self._factors[Least.BYTES],
        )
        return self._mixture.solve(self._least, limits)

    def _new(self, solution: Solution | None) -> Solution | None:
        return None if solution is None or solution.chosen in self._known else solution

    def _promising(self, solution: Solution | None) -> Solution | None:
        """A new solution that is better than the best known ones by what a measurement can tell."""
        new = self._new(solution)
        return new if new is not None and self._is_promising(new) else None

    def _is_promising(self, solution: Solution) -> bool:
        best = self._best()
        before = math.inf if best is None else self._mixture.of(best).figure(self._least)
        rival = self._rival / self._factors.get(self._least, 1.0)
        return solution.figure(self._least) <= (1.0 - SMALL_GAIN) * min(before, rival)

    def _worth_a_build(self, solution: Solution | None) -> Solution | None:
        """A promising solution, or, once, one that is as fast and more exact: it leaves out what does not pay."""
        best, new = self._best(), self._new(solution)
        if (found := self._promising(solution)) is not None or new is None or best is None or not self._may_tidy:
            return found
        if self._known[best].figure(self._least) > self._rival:
            return None
        self._may_tidy = False
        before = self._mixture.of(best)
        return new if new.noise < before.noise and new.time <= WORTHWHILE * before.time else None

    def _best(self) -> Chosen | None:
        """The best that is known to meet the goal."""
        meeting = [chosen for chosen, one in self._known.items() if one.is_accurate and one.is_affordable]
        return min(meeting, key=lambda chosen: self._known[chosen].figure(self._least), default=None)

    def _predicted_db(self, chosen: Chosen) -> float:
        return decibels(1.0, self._mixture.of(chosen).noise)

    def _measured_db(self, chosen: Chosen) -> float:
        """Of a mixture that was built."""
        measured = self._known[chosen].sqnr_db
        return self._predicted_db(chosen) if measured is None else measured

    def _bounds_db(self, fidelity_db: Callable[[Chosen], float]) -> tuple[float | None, float | None]:
        """Fidelity of the most exact mixture that is not accurate, and of the least exact one above that is.

        None where no such mixture is known.
        """
        low = max((fidelity_db(at) for at, one in self._known.items() if not one.is_accurate), default=None)
        accurate = (fidelity_db(at) for at, one in self._known.items() if one.is_accurate)
        return low, min((one for one in accurate if low is None or one > low), default=None)


def _within(most: float, value: float) -> float:
    return min(most, max(-most, value))
