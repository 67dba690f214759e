"""At most three cards of advice: all rules are asked, and their cards ranked by what the recipe wants."""

from __future__ import annotations

import math

from ace_studio.engine.advice.accuracy_rules import ACCURACY_RULES
from ace_studio.engine.advice.facts import Facts
from ace_studio.engine.advice.speed_rules import SPEED_RULES
from ace_studio.engine.advice.trust_rules import TRUST_RULES
from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.goals import ACCURACY_BOUNDS, GoalBound
from ace_studio.records.recipes.recipe import Objective

MOST_CARDS = 3
RULES = (*TRUST_RULES, *ACCURACY_RULES, *SPEED_RULES)
_WANTED = {
    Objective.LATENCY: AdviceQuantity.LATENCY,
    Objective.SIZE: AdviceQuantity.SIZE,
    Objective.ACCURACY: AdviceQuantity.FIDELITY,
}
_BOUNDS = {
    AdviceQuantity.LATENCY: {GoalBound.LATENCY},
    AdviceQuantity.SIZE: {GoalBound.SIZE},
    AdviceQuantity.FIDELITY: ACCURACY_BOUNDS,
    AdviceQuantity.METRIC: ACCURACY_BOUNDS,
}
"""The bounds that a gain in a quantity helps to meet."""
_URGENT = frozenset({"calibration-data"})
"""Kinds of cards to follow first: until then the other figures mean little."""


def advise(facts: Facts) -> tuple[Advice, ...]:
    """The best cards first, without the one that this run was made from; none if no target was chosen."""
    if facts.chosen is None:
        return ()
    found = [card for rule in RULES if (card := rule(facts)) is not None]
    fresh = [card for card in found if card.kind != facts.recipe.advice_from.kind or card.kind in _URGENT]
    return tuple(sorted(fresh, key=lambda card: -_rank(card, facts))[:MOST_CARDS])


def _rank(card: Advice, facts: Facts) -> float:
    """Urgent cards first, then those for missed bounds, then those for the objective; each by the size of the gain."""
    urgent = 100.0 if card.kind in _URGENT else 0.0
    missed = 10.0 if facts.missed & _BOUNDS.get(card.quantity, frozenset()) else 0.0
    wanted = 3.0 if card.quantity is _WANTED[facts.objective] else 0.0
    by_hand = -1.0 if card.do_first else 0.0
    return urgent + missed + wanted + by_hand + _size(card)


def _size(card: Advice) -> float:
    """The gain in one unit: twice as fast, half the size and 6 dB count the same."""
    gain = card.estimated_gain
    if gain is None:
        return 0.1
    match card.quantity:
        case AdviceQuantity.LATENCY | AdviceQuantity.SIZE:
            return math.log2(max(gain, 1e-3))
        case AdviceQuantity.FIDELITY:
            return gain / 6.0
        case AdviceQuantity.METRIC:
            return gain * 20.0
        case AdviceQuantity.TRUST:
            return 0.1
