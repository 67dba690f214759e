"""The precisions of all ops at once, as an integer program: the cheapest mixture within bounds on noise, time and size.

Every decision group takes one precision, each with its noise, its measured time and its bytes. Where two groups that
exchange a value store it differently, the conversion costs time too.

Source of adding the noises up: Widrow and Kollar 2008, Quantization Noise, chapter 5 (noises of different quantizers
are uncorrelated).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from ace_studio.records.goals import WORTHWHILE
from ace_studio.records.recipes.plan import Precision

SOLVER_SECONDS = 10.0
"""HiGHS gives its best mixture until then. A graph of 1,000 groups takes about a second."""
_GAP = 1e-4
"""Relative distance to the optimum at which the solver may stop: far below what a measurement can tell."""
_NOTHING = 1e-30


class Least(StrEnum):
    """What a mixture is to have as little of as possible."""

    TIME = "time"
    BYTES = "bytes"
    NOISE = "noise"


@dataclass(frozen=True)
class Choice:
    """What one precision means for one decision group."""

    precision: Precision
    noise: float
    """Noise power that it adds to the outputs, relative to their signal."""
    time: float
    """Share of the baseline's latency."""
    bytes: float = 0.0
    """Of the weights as stored."""

    def figure(self, least: Least) -> float:
        """What is to be small."""
        return float(getattr(self, least))


@dataclass(frozen=True)
class DecisionGroup:
    """Ops that take the same precision: they read one value quantized once, or run in one kernel."""

    op_ids: tuple[str, ...]
    choices: tuple[Choice, ...]

    @property
    def exact(self) -> int:
        """Index of the choice with the least noise."""
        return min(range(len(self.choices)), key=lambda at: self.choices[at].noise)


@dataclass(frozen=True)
class Border:
    """A value that one group gives to another; it is converted where they store it differently."""

    source: int
    target: int
    time: float
    """Of the conversion, as a share of the baseline's latency."""


@dataclass(frozen=True)
class Limits:
    """Bounds on a mixture; None for no bound."""

    noise: float | None = None
    time: float | None = None
    bytes: float | None = None


@dataclass(frozen=True)
class Solution:
    """A precision per group, and what the figures of the groups promise for it."""

    chosen: tuple[int, ...]
    """Index into the choices of each group."""
    noise: float
    time: float
    bytes: float
    borders: float
    """The part of the time that goes into conversions."""

    def figure(self, least: Least) -> float:
        """What is to be small."""
        return float(getattr(self, least))


def storage(precision: Precision) -> str:
    """How a group of this precision stores the values that it exchanges with others."""
    if precision in (Precision.INT8_STATIC, Precision.BF16, Precision.FP16, Precision.FP8):
        return str(precision)
    return str(Precision.FP32)  # dynamic and weight-only ops take and give floats


@dataclass(frozen=True)
class Mixture:
    """The groups of a graph on one target, with what is the same for every choice."""

    groups: tuple[DecisionGroup, ...]
    borders: tuple[Border, ...] = ()
    fixed_time: float = 0.0
    """Of ops that have no choice."""
    fixed_bytes: float = 0.0

    def uniform(self, precision: Precision) -> tuple[int, ...]:
        """Every group at this precision where it has it, else at its most exact one."""
        return tuple(
            next((at for at, one in enumerate(group.choices) if one.precision is precision), group.exact)
            for group in self.groups
        )

    def of(self, chosen: Sequence[int]) -> Solution:
        """The figures of a mixture."""
        picked = [group.choices[at] for group, at in zip(self.groups, chosen, strict=True)]
        stored = [storage(one.precision) for one in picked]
        borders = sum(one.time for one in self.borders if stored[one.source] != stored[one.target])
        return Solution(
            chosen=tuple(chosen),
            noise=sum(one.noise for one in picked),
            time=self.fixed_time + borders + sum(one.time for one in picked),
            bytes=self.fixed_bytes + sum(one.bytes for one in picked),
            borders=borders,
        )

    def assigned(self, chosen: Sequence[int]) -> dict[str, Precision]:
        """Op id -> precision, for every op that has a choice."""
        return {
            op_id: group.choices[at].precision
            for group, at in zip(self.groups, chosen, strict=True)
            for op_id in group.op_ids
        }

    def corrected(self, *, noise: Mapping[Precision, float] | None = None, borders: float = 1.0) -> Mixture:
        """With the noise of each precision, and the price of the conversions, times what measurements say."""
        factors = noise or {}
        groups = tuple(
            replace(
                group,
                choices=tuple(replace(one, noise=one.noise * factors.get(one.precision, 1.0)) for one in group.choices),
            )
            for group in self.groups
        )
        return replace(
            self, groups=groups, borders=tuple(replace(one, time=one.time * borders) for one in self.borders)
        )

    def solve(self, least: Least, limits: Limits) -> Solution | None:
        """The mixture with the least of a figure within the limits; None if there is none.

        Where that is the time, no set of groups is low that would be less than `WORTHWHILE` times slower if all of it
        were exact, conversions included. Needs scipy. The three figures are scaled, so that the solver's tolerances
        mean the same for each.
        """
        return _Program(self, least, limits).solve()

    def unpaid(self) -> tuple[int, ...]:
        """Indices of the groups for which no lower precision pays, however little accuracy is asked for."""
        fastest = self.solve(Least.TIME, Limits())
        chosen = () if fastest is None else fastest.chosen
        return tuple(
            at
            for at, (group, own) in enumerate(zip(self.groups, chosen, strict=False))
            if own == group.exact and len(group.choices) > 1
        )


_Row = tuple[Mapping[int, float], float, float]
"""A constraint: the factor of each variable, and the least and the largest value of the sum."""


class _Program:
    """The integer program: a binary per group and choice, and one variable in 0..1 per border that may be crossed."""

    def __init__(self, mixture: Mixture, least: Least, limits: Limits) -> None:
        self._mixture = mixture
        self._least = least
        self._limits = limits
        self._starts = np.cumsum([0, *(len(group.choices) for group in mixture.groups)])
        self._count = int(self._starts[-1])
        self._crossable = [one for one in mixture.borders if self._may_differ(one)]
        self._width = self._count + len(self._crossable)

    def solve(self) -> Solution | None:
        from scipy.optimize import Bounds, milp  # noqa: PLC0415 - importing it takes a third of a second

        rows = [*self._one_choice_each(), *self._limit_rows(), *self._border_rows()]
        upper = np.ones(self._width)
        upper[: self._count][self._hopeless()] = 0.0
        found = milp(
            self._scaled(self._objective()),
            integrality=np.concatenate([np.ones(self._count), np.zeros(len(self._crossable))]),
            bounds=Bounds(0.0, upper),
            constraints=_constraint(rows, self._width),
            options={"time_limit": SOLVER_SECONDS, "mip_rel_gap": _GAP},
        )
        if found.x is None:
            return None
        chosen = [
            int(np.argmax(found.x[start:end])) for start, end in zip(self._starts, self._starts[1:], strict=False)
        ]
        return self._mixture.of(chosen)

    def _objective(self) -> Any:
        """What is to be small: a choice that is not exact counts with the gain that it must have at least."""
        weights = self._weights(self._least)
        if self._least is Least.TIME:
            weights[: self._count] *= WORTHWHILE
            for start, group in zip(self._starts, self._mixture.groups, strict=False):
                weights[start + group.exact] /= WORTHWHILE
        return weights

    def _weights(self, least: Least) -> Any:
        """A figure of every choice, and of every crossed border. Shape: the number of variables."""
        own = [one.figure(least) for group in self._mixture.groups for one in group.choices]
        crossing = [one.time if least is Least.TIME else 0.0 for one in self._crossable]
        return np.array(own + crossing)

    @staticmethod
    def _scaled(weights: Any) -> Any:
        return weights / (float(np.abs(weights).max(initial=0.0)) or 1.0)

    def _limit_rows(self) -> list[_Row]:
        fixed = {Least.TIME: self._mixture.fixed_time, Least.BYTES: self._mixture.fixed_bytes}
        rows: list[_Row] = []
        for least in Least:
            limit = getattr(self._limits, least)
            if limit is not None:
                room = limit - fixed.get(least, 0.0)
                scale = max(abs(room), _NOTHING)
                weights = np.minimum(self._weights(least) / scale, 1e6)
                rows.append((dict(enumerate(weights)), -math.inf, room / scale))
        return rows

    def _hopeless(self) -> Any:
        """Choices that alone exceed the limit of the noise: left out, because their size would drown the others'."""
        if self._limits.noise is None:
            return np.zeros(self._count, dtype=bool)
        return self._weights(Least.NOISE)[: self._count] > self._limits.noise

    def _one_choice_each(self) -> list[_Row]:
        return [
            (dict.fromkeys(range(start, end), 1.0), 1.0, 1.0)
            for start, end in zip(self._starts, self._starts[1:], strict=False)
        ]

    def _border_rows(self) -> list[_Row]:
        """A border is crossed if its source stores a value in a way that its target does not."""
        rows: list[_Row] = []
        for at, border in enumerate(self._crossable):
            source, target = self._by_storage(border.source), self._by_storage(border.target)
            for kind in source:
                row = dict.fromkeys(source[kind], -1.0) | dict.fromkeys(target.get(kind, ()), 1.0)
                rows.append((row | {self._count + at: 1.0}, 0.0, math.inf))
        return rows

    def _by_storage(self, group: int) -> dict[str, list[int]]:
        """Storage -> the variables of the group's choices that have it."""
        found: dict[str, list[int]] = {}
        for at, one in enumerate(self._mixture.groups[group].choices):
            found.setdefault(storage(one.precision), []).append(int(self._starts[group]) + at)
        return found

    def _may_differ(self, border: Border) -> bool:
        kinds = {*self._by_storage(border.source), *self._by_storage(border.target)}
        return len(kinds) > 1 and border.source != border.target and border.time > 0.0


def _constraint(rows: Sequence[_Row], width: int) -> Any:
    """``lower <= matrix @ variables <= upper`` with a sparse matrix."""
    from scipy.optimize import LinearConstraint  # noqa: PLC0415 - as above
    from scipy.sparse import csr_array  # noqa: PLC0415 - as above

    places = [(row, column, value) for row, (weights, _, _) in enumerate(rows) for column, value in weights.items()]
    row, column, value = (list(part) for part in zip(*places, strict=True))
    matrix = csr_array((value, (row, column)), shape=(len(rows), width))
    return LinearConstraint(matrix, [low for _, low, _ in rows], [high for _, _, high in rows])
