"""Rules about figures that are not meaningful yet, and about a batch size that is fixed without need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ace_studio.engine.advice.facts import Facts
from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.tensors import DimVerdict


def give_calibration_data(facts: Facts) -> Advice | None:
    """Calibration used made-up numbers or the tracing examples."""
    codes = {one.code for one in facts.result.warnings} & {"fake-calibration", "calibration-from-tracing"}
    if not codes or str(Precision.INT8_STATIC) not in facts.tried:
        return None
    is_fake = "fake-calibration" in codes
    ranges = "numbers that were made up" if is_fake else "the few examples that the graph was traced with"
    shown = "" if facts.run.sqnr_db is None else f" So were the {facts.run.sqnr_db:.1f} dB of this run."
    return Advice(
        kind="calibration-data",
        title="Give real data to calibrate with",
        why=f"The ranges of int8 were found on {ranges}.{shown}",
        estimate="no number: latency and size stay, accuracy on real data becomes known and most often better",
        quantity=AdviceQuantity.TRUST,
        change={"calibration": {"inputs": "calibration_inputs"}},
        do_first="Write a function calibration_inputs() beside the model that gives 32 to 128 real inputs, or keep "
        "what a script of yours uses with `ace-studio catch`.",
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
