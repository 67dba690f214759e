"""What each target rounds around ops at int8-static, for simulations of what it will build."""

from __future__ import annotations

from collections.abc import Iterable

from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import PAIRS, READS, RESULTS, Int8Style
from ace_studio.records.recipes.plan import ActivationGrid, Plan, WeightGranularity
from ace_studio.records.recipes.recipe import Observer

STYLES: dict[str, Int8Style] = {
    "eager": READS,
    "inductor": READS,
    "aoti": READS,
    "onnxruntime": PAIRS,
    "openvino": READS,
    "executorch": RESULTS,
    "torchao-cuda": READS,
    "tensorrt": PAIRS,
}
"""Target -> its style, as long as nothing is asked for that it leaves to another library."""
_BY_NOISE = (READS, RESULTS, PAIRS)
"""From the one that rounds least to the one that rounds most."""


def int8_style_of(target: str, plan: Plan, ranges: RangeChoice) -> Int8Style:
    """The style of one target for a plan.

    OpenVINO gets NNCF's model, but pairs where NNCF cannot give the grids that are asked for.
    """
    usual = (WeightGranularity.PER_CHANNEL, ActivationGrid.AFFINE)
    schemes = (plan.scheme, *(rule.scheme(plan) for rule in plan.rules))
    is_plain = ranges.observer is Observer.MIN_MAX and all((one.weights, one.activations) == usual for one in schemes)
    return PAIRS if target == "openvino" and not is_plain else STYLES[target]


def most_rounding(targets: Iterable[str], plan: Plan, ranges: RangeChoice) -> Int8Style:
    """The style that rounds most among some targets, for what is found once for all; `READS` without any."""
    found = [int8_style_of(target, plan, ranges) for target in targets]
    return max(found, key=_BY_NOISE.index, default=READS)
