"""Advice after a run: ranked cards, each with an estimate, and afterwards the estimate against what came out.

A card's ``change`` is what it would set in the recipe, as the tables of a recipe file:
``{"plan": {"default": "bf16"}}``. A value replaces the one that is there; None takes the key out.
`recipe_edit.with_changes` applies it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class AdviceQuantity(StrEnum):
    """What a card's gain is counted in."""

    LATENCY = "latency"
    """Times faster than the chosen run: 1.5 is two thirds of its time."""
    SIZE = "size"
    """Times smaller than the chosen run's artifact."""
    FIDELITY = "fidelity"
    """dB that the outputs come closer to the original's."""
    METRIC = "metric"
    """Relative drop of the metric that is won back, as a fraction."""
    TRUST = "trust"
    """No number: the figures of the run begin to mean what they say."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """One card."""

    kind: str
    """Which rule made it, such as ``calibration-data``; stable, so that scripts can match on it."""
    title: str
    why: str
    """With figures from this run."""
    estimate: str
    """The gain in words, and how sure it is."""
    quantity: AdviceQuantity
    estimated_gain: float | None = None
    """In the unit of `quantity`; None where nobody can tell a number."""
    change: dict[str, Any] = {}
    """What applying it sets in the recipe; empty if a person has to do something first."""
    do_first: str = ""
    """What has to be done by hand: a line to install something, a function to write. Empty if nothing."""

    @property
    def can_apply(self) -> bool:
        """Whether a new run can be made of it without anybody doing something by hand."""
        return bool(self.change) and not self.do_first


class AdviceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A card that this run was made from: what was estimated and what came out."""

    kind: str
    title: str
    quantity: AdviceQuantity
    estimated_gain: float | None = None
    before: float | None = None
    """The quantity in the run that gave the card: speed-up over the baseline, bytes, dB, or relative drop."""
    after: float | None = None
    """The same in this run."""
    actual_gain: float | None = None
    """In the unit of `estimated_gain`; None if it could not be measured."""
    verdict: str = ""
    """Estimate against actual in one sentence."""
