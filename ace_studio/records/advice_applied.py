"""Apply a card of advice to a recipe, and compare its estimate with the actual gain."""

from typing import Any

from ace_studio.records.advice import Advice, AdviceOutcome, AdviceQuantity
from ace_studio.records.recipes.edit import with_changes
from ace_studio.records.recipes.recipe import AdviceOrigin, Recipe
from ace_studio.records.results import Result

BY_THE_CLOCK = frozenset({"threads"})
"""Kinds of cards whose change speeds up the baseline too: their gain is measured in ms, not by the speed-up."""


def figure_of(result: Result, *, kind: str, quantity: AdviceQuantity) -> float | None:
    """The card's quantity in a run: speed-up (or ms), bytes, dB, or relative drop of the metric; None if unknown."""
    if result.chosen is None:
        return None
    run = result.runs[result.chosen]
    match quantity:
        case AdviceQuantity.LATENCY if kind in BY_THE_CLOCK:
            return run.latency_ms.p50 if run.latency_ms else None
        case AdviceQuantity.LATENCY:
            return run.speedup
        case AdviceQuantity.SIZE:
            return None if run.size_bytes is None else float(run.size_bytes)
        case AdviceQuantity.FIDELITY:
            return run.fidelity
        case AdviceQuantity.METRIC:
            return run.metric_drop
        case AdviceQuantity.TRUST:
            return None


def applied_recipe(recipe: Recipe, result: Result, card: Advice) -> Recipe:
    """The recipe with the card's changes and, for `outcome_of`, its estimate and the figure before.

    Raises: AceError(RECIPE) if the changes do not fit the recipe.
    """
    before = figure_of(result, kind=card.kind, quantity=card.quantity)
    origin: dict[str, Any] = {
        "kind": card.kind,
        "title": card.title,
        "quantity": str(card.quantity),
        "estimated_gain": card.estimated_gain,
        "before": before,
    }
    return with_changes(with_changes(recipe, {"advice_from": origin}), card.change)


def outcome_of(origin: AdviceOrigin, result: Result) -> AdviceOutcome | None:
    """Estimated and actual gain of a run that was made from a card; None for any other run."""
    if not origin.kind:
        return None
    quantity = AdviceQuantity(origin.quantity)
    after = figure_of(result, kind=origin.kind, quantity=quantity)
    actual = _gain(origin, quantity, after)
    return AdviceOutcome(
        kind=origin.kind,
        title=origin.title,
        quantity=quantity,
        estimated_gain=origin.estimated_gain,
        before=origin.before,
        after=after,
        actual_gain=actual,
        verdict=_verdict(origin.estimated_gain, actual, quantity),
    )


def _gain(origin: AdviceOrigin, quantity: AdviceQuantity, after: float | None) -> float | None:
    """The actual gain, in the unit of the estimate."""
    before = origin.before
    if before is None or after is None:
        return None
    is_ratio_of_costs = quantity is AdviceQuantity.SIZE or origin.kind in BY_THE_CLOCK
    match quantity:
        case AdviceQuantity.LATENCY | AdviceQuantity.SIZE:
            above, below = (before, after) if is_ratio_of_costs else (after, before)
            return above / below if below else None
        case AdviceQuantity.FIDELITY:
            return after - before
        case AdviceQuantity.METRIC:
            return before - after
        case AdviceQuantity.TRUST:
            return None


_GAIN_TEXTS = {
    AdviceQuantity.LATENCY: "{:.2f} times as fast",
    AdviceQuantity.SIZE: "{:.2f} times smaller",
    AdviceQuantity.FIDELITY: "{:+.1f} dB",
    AdviceQuantity.METRIC: "{:+.2%} of the metric",
}


def gain_text(gain: float | None, quantity: AdviceQuantity) -> str:
    """A gain in words: ``1.40 times as fast``, ``+6.0 dB``."""
    text = _GAIN_TEXTS.get(quantity)
    return "no number" if gain is None or text is None else text.format(gain)


def _verdict(estimated: float | None, actual: float | None, quantity: AdviceQuantity) -> str:
    if actual is None:
        return "the actual gain cannot be put in a number"
    nothing = 1.0 if quantity in (AdviceQuantity.LATENCY, AdviceQuantity.SIZE) else 0.0
    shown = gain_text(actual, quantity)
    if estimated is None:
        return f"nothing was estimated; it is {shown}"
    words = f"estimated {gain_text(estimated, quantity)}, it is {shown}"
    if actual <= nothing:
        return f"{words}: no gain"
    return (
        f"{words}: {(actual - nothing) / (estimated - nothing):.0%} of the estimate" if estimated > nothing else words
    )
