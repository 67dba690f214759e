"""At most three cards of advice: all rules are asked, and their cards ranked by what the recipe wants."""

import math
from collections.abc import Callable
from typing import Any

from ace_studio.engine.advice.accuracy_rules import ACCURACY_RULES
from ace_studio.engine.advice.facts import Facts
from ace_studio.engine.advice.speed_rules import SPEED_RULES, WORTH, expected_gain
from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.goals import ACCURACY_BOUNDS, GoalBound
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Objective
from ace_studio.records.tensors import DimVerdict


def give_calibration_data(facts: Facts) -> Advice | None:
    """Ranges of the chosen run were found on made-up numbers or the tracing examples, or could not be found at all."""
    codes = {one.code for one in facts.result.warnings} & {"fake-calibration", "calibration-from-tracing", "no-data"}
    static, gain = Precision.INT8_STATIC, None
    if "no-data" in codes:
        gain = round(max((expected_gain(facts, name, static) for name in facts.can(static)), default=0.0), 2)
    if not codes or (str(static) not in facts.run_precisions if gain is None else gain < WORTH):
        return None
    ranges = "numbers that were made up" if "fake-calibration" in codes else "the few examples that were traced with"
    shown = "" if facts.run.fidelity is None else f" So were the {facts.run.fidelity:.1f} dB of this run."
    return Advice(
        kind="calibration-data",
        title="Give real data to calibrate with",
        why=f"The ranges of int8 were found on {ranges}.{shown}"
        if gain is None
        else f"Without data no ranges of activations are known, so {static} was not tried.",
        estimate="no number: latency and size stay, accuracy on real data becomes known and most often better"
        if gain is None
        else f"about {gain:.1f} times as fast as now, judged by other networks",
        quantity=AdviceQuantity.TRUST if gain is None else AdviceQuantity.LATENCY,
        estimated_gain=gain,
        change={"calibration": {"inputs": "calibration.npz" if facts.is_onnx_file else "calibration_inputs"}},
        do_first="Write 32 to 128 real inputs into a file calibration.npz beside the model, an array for each name."
        if facts.is_onnx_file
        else "Write a function calibration_inputs() beside the model that gives 32 to 128 real inputs, or keep what a "
        "script of yours uses with `ace-studio catch`.",
    )


def free_the_batch(facts: Facts) -> Advice | None:
    """The first dimension is fixed, so the artifact takes no other batch size."""
    capture = facts.result.capture
    if capture is None:
        return None
    fixed: dict[str, Any] = {}
    size = 0
    for found in capture.inputs:
        first = next((dim for dim in found.dims if dim.index == 0), None)
        if first is not None and len(found.dims) > 1 and first.verdict is not DimVerdict.DYNAMIC:
            fixed[f"{found.name}.0"] = "dynamic"
            size = first.size
    asked = {str(name): str(choice) for name, choice in facts.recipe.inputs.dims.items()}
    if not fixed or len(fixed) != len(capture.inputs) or set(fixed) & set(asked):
        return None
    return Advice(
        kind="dynamic-batch",
        title="Make the batch size dynamic",
        why=f"Every example has {size} as its first size, so the artifact takes no other batch size.",
        estimate="no number: the artifact takes any batch, and larger ones use the processor better",
        quantity=AdviceQuantity.TRUST,
        change={"inputs": {"dims": {**asked, **fixed}}},
    )


TRUST_RULES: tuple[Callable[[Facts], Advice | None], ...] = (give_calibration_data, free_the_batch)


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
    return tuple(sorted(fresh, key=lambda card: _rank(card, facts), reverse=True)[:MOST_CARDS])


def _rank(card: Advice, facts: Facts) -> tuple[bool, bool, float]:
    """Urgent cards first, then those for missed bounds; each by the gain, where one for the objective counts more."""
    is_for_missed = bool(facts.missed & _BOUNDS.get(card.quantity, frozenset()))
    wanted = 3.0 if card.quantity is _WANTED[facts.objective] else 0.0
    by_hand = -1.0 if card.do_first else 0.0
    return card.kind in _URGENT, is_for_missed, wanted + by_hand + _size(card)


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
