"""Advice after a run: ranked cards with estimates, and the actual gain of a card that was followed.

A card's ``change`` is what it would set in the recipe, as the tables of a recipe file:
``{"plan": {"default": "bf16"}}``. A value replaces the present one; None removes the key.
`recipes.edit.with_changes` applies it.
"""

from enum import StrEnum
from typing import Any

import msgspec

from ace_studio.records.recipes.toml_values import pair_text


class AdviceQuantity(StrEnum):
    """The quantity that a card improves."""

    LATENCY = "latency"
    """Times faster than the chosen run: 1.5 is two thirds of its time."""
    SIZE = "size"
    """Times smaller than the chosen run's artifact."""
    FIDELITY = "fidelity"
    """dB that the outputs come closer to the original's."""
    METRIC = "metric"
    """Relative drop of the metric that is recovered, as a fraction."""
    TRUST = "trust"
    """No number: the figures of the run become meaningful."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """One card."""

    kind: str
    """The rule that made it, such as ``calibration-data``; stable, so that scripts can match it."""
    title: str
    why: str
    """With figures from this run."""
    estimate: str
    """The gain and its certainty, in words."""
    quantity: AdviceQuantity
    estimated_gain: float | None = None
    """In the unit of `quantity`; None if no number can be given."""
    change: dict[str, Any] = {}
    """Changes to the recipe; empty if a person has to do something first."""
    do_first: str = ""
    """What has to be done by hand, such as a command that installs something; may be empty."""

    @property
    def change_text(self) -> str:
        """The changes as a recipe writes them, on one line."""
        return "; ".join(
            f"[{table}] without {key}" if value is None else f"[{table}] {pair_text(key, value)}"
            for table, keys in self.change.items()
            for key, value in keys.items()
        )


class AdviceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The card that a run was made from, with its estimated and its actual gain."""

    kind: str
    title: str
    quantity: AdviceQuantity
    estimated_gain: float | None = None
    before: float | None = None
    """The quantity in the run that gave the card: speed-up over the baseline, bytes, dB, or relative drop."""
    after: float | None = None
    """The same in this run."""
    actual_gain: float | None = None
    """In the unit of `estimated_gain`; None if it was not measured."""
    verdict: str = ""
    """Estimated and actual gain in one sentence."""
