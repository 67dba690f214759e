"""Better than plain quantization: methods that change the captured graph's weights, each kept only if it helps.

A method is one file and one row of `METHODS`. What it gives are layers of changed weights over the capture, so every
target builds from the same better weights, and the original module stays what results are compared with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.improve.awq import awq
from ace_studio.engine.improve.bias_correction import correct_biases
from ace_studio.engine.improve.edits import Layer, changed_ops, with_layers
from ace_studio.engine.improve.equalize import equalize
from ace_studio.engine.improve.gptq import gptq
from ace_studio.engine.improve.smoothquant import smoothquant
from ace_studio.engine.improve.watch import HIGH, Workshop, fidelity_db
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import READS, Int8Style
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import ImproveMethod
from ace_studio.records.results import Improvement

__all__ = ["METHODS", "Improved", "improve", "with_layers"]

SMALLEST_GAIN_DB = 0.05
"""What a method must gain to be kept; less is chance."""
MOST_EXAMPLES = 32
"""Calibration examples that are used at most."""

METHODS: dict[ImproveMethod, Callable[[Workshop, list[Layer]], tuple[list[Layer], str]]] = {
    ImproveMethod.EQUALIZE: equalize,
    ImproveMethod.SMOOTHQUANT: smoothquant,
    ImproveMethod.BIAS_CORRECTION: correct_biases,
    ImproveMethod.GPTQ: gptq,
    ImproveMethod.AWQ: awq,
}
"""Word -> what it does: takes the workshop and the layers so far, gives new ones, or none and why."""


ROUNDING = frozenset({ImproveMethod.BIAS_CORRECTION, ImproveMethod.GPTQ})
"""Methods that change the float model; what is scaled after them would not be theirs any more."""


@dataclass(frozen=True)
class Improved:
    """What was kept, and what became of every method."""

    layers: tuple[Layer, ...] = ()
    reports: tuple[Improvement, ...] = ()


def improve(
    captured: CapturedModel,
    plan: BoundPlan,
    methods: Sequence[ImproveMethod],
    examples: Sequence[Sequence[Tensor]],
    *,
    ranges: RangeChoice,
    reporter: Reporter,
    style: Int8Style = READS,
) -> Improved:
    """Try the methods one after the other, each on top of what was kept before, and keep what helps.

    Args:
        captured: A capture of the whole graph; it is not changed.
        plan: What every op is rounded to.
        methods: Tried in this order, those that leave the float model as it is before those that round.
        examples: Flat tensor inputs of calibration examples. A quarter of them, one at least, is held out: a method
            does not see them, and is kept if the simulated plan comes closer to the unchanged float model on them.
        ranges: How activation ranges follow from values.
        reporter: Hears of every method.
        style: What the targets round around ops at int8-static.
    """
    precision = str(plan.plan.default)
    problem = _problem(plan, examples)
    if problem:
        return Improved(reports=tuple(_left(method, precision, problem) for method in methods))
    work, held = _split(examples[:MOST_EXAMPLES])
    shop = Workshop(captured, plan, work, ranges, reporter, style)
    layers: list[Layer] = []
    reports = []
    with torch.no_grad():
        references = shop.references(held)
        before = fidelity_db(shop.simulator(layers), plan, held, references)
        for method in sorted(methods, key=lambda one: one in ROUNDING):
            reporter.phase(Phase.COMPRESS, f"trying {method} at {precision}")
            report, new = _try(shop, method, layers, before=before, held=held, references=references)
            reports.append(report)
            if report.kept and report.after_db is not None:
                layers, before = [*layers, *new], report.after_db
    return Improved(tuple(layers), tuple(reports))


def _problem(plan: BoundPlan, examples: Sequence[Sequence[Tensor]]) -> str:
    if not plan.precisions - HIGH:
        return f"at {plan.plan.default} nothing is rounded to integers"
    if len(examples) < 2:
        return "it takes two calibration examples or more: some to work with, some to judge by"
    return ""


def _left(method: ImproveMethod, precision: str, reason: str, *, before: float | None = None) -> Improvement:
    return Improvement(method=str(method), precision=precision, before_db=before, reason=reason)


def _split(examples: Sequence[Sequence[Tensor]]) -> tuple[list[Sequence[Tensor]], list[Sequence[Tensor]]]:
    """Every fourth example is held out; of two or three, the last."""
    held = [index for index in range(len(examples)) if index % 4 == 3] or [len(examples) - 1]
    return (
        [example for index, example in enumerate(examples) if index not in held],
        [examples[index] for index in held],
    )


def _try(
    shop: Workshop,
    method: ImproveMethod,
    layers: list[Layer],
    *,
    before: float,
    held: Sequence[Sequence[Tensor]],
    references: Sequence[Sequence[Tensor]],
) -> tuple[Improvement, list[Layer]]:
    started = time.monotonic()
    precision = str(shop.plan.plan.default)
    new, reason = METHODS[method](shop, layers)
    if not new:
        return _left(method, precision, reason, before=round(before, 3)), []
    after = fidelity_db(shop.simulator([*layers, *new]), shop.plan, held, references)
    kept = after >= before + SMALLEST_GAIN_DB
    words = "closer to the original" if kept else "no closer to the original"
    report = Improvement(
        method=str(method),
        precision=precision,
        before_db=round(before, 3),
        after_db=round(after, 3),
        kept=kept,
        reason=f"{words} on {len(held)} calibration example{'s' if len(held) > 1 else ''} that it did not see",
        ops=changed_ops(shop.captured, new),
        seconds=round(time.monotonic() - started, 3),
    )
    return report, new
