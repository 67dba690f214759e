"""Improvements of a job: found once for plans that round the same way, and built into every candidate of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.improve import Improved, improve, with_layers
from ace_studio.engine.improve.watch import HIGH
from ace_studio.engine.pipeline.sensitivity import targets_of
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.targets.shared.int8_styles import most_rounding
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod
from ace_studio.records.results import Improvement

if TYPE_CHECKING:
    from ace_studio.engine.pipeline.compress.bench import Bench

Methods = tuple[ImproveMethod, ...]


@dataclass
class Improving:
    """What was found in this job so far."""

    found: dict[tuple[Plan, Methods], Improved] = field(default_factory=dict)
    """By plan, without the rules that keep ops high, and by what was tried."""
    by_targets: list[Improvement] = field(default_factory=list)
    """What targets did in ways of their own."""
    built: tuple[object, CapturedModel, dict[str, Any]] | None = None
    """The capture with changed weights that was built last, what made it, and what targets share of it."""

    @property
    def reports(self) -> tuple[Improvement, ...]:
        """What became of every method, plan by plan."""
        found = [report for improved in self.found.values() for report in improved.reports]
        return (*found, *self.by_targets)


def improved_capture(
    bench: Bench, captured: CapturedModel, plan: BoundPlan, methods: Methods
) -> tuple[CapturedModel, dict[str, Any]]:
    """The capture that a plan is lowered from, with the weights that were found for it, and what its targets share.

    Without improvements, or where none helps, it is the capture itself.
    """
    if not methods or not plan.precisions - HIGH:
        return captured, bench.shared
    improved = _improved(bench, plan.plan, methods)
    if not improved.layers:
        return captured, bench.shared

    def is_low(op_id: str) -> bool:
        return plan.precision.get(op_id, Precision.FP32) not in HIGH

    owners = {op_id for layer in improved.layers for op_id in layer.owners.values()}
    key = (_rounding_part(plan.plan), methods, frozenset(op_id for op_id in owners if is_low(op_id)))
    built = bench.improving.built
    if built is None or built[0] != key:
        built = (key, with_layers(captured, improved.layers, is_low=is_low), {})
        bench.improving.built = built
    return built[1], built[2]


def methods_that_help(bench: Bench, plan: Plan, methods: Methods) -> Methods:
    """Those of the methods that bring the simulated plan closer to the original; found once for each plan."""
    return tuple(ImproveMethod(one.method) for one in _improved(bench, plan, methods).reports if one.kept)


def left_methods(bench: Bench, plan: BoundPlan, methods: Methods) -> frozenset[ImproveMethod]:
    """The methods that found nothing to do in the graph; a target may have its own way to do them."""
    improved = bench.improving.found.get((_rounding_part(plan.plan), methods))
    if improved is None:
        return frozenset()
    return frozenset(ImproveMethod(one.method) for one in improved.reports if one.after_db is None)


def ranges_of(bench: Bench) -> RangeChoice:
    """How the recipe wants ranges to follow from values."""
    return RangeChoice(bench.recipe.calibration.observer, percentile=bench.recipe.calibration.percentile)


def _rounding_part(plan: Plan) -> Plan:
    """The plan without the rules that keep ops high: plans of a search that differ only there share improvements."""
    return msgspec.structs.replace(plan, rules=tuple(rule for rule in plan.rules if rule.precision not in HIGH))


def _improved(bench: Bench, plan: Plan, methods: Methods) -> Improved:
    wanted = (_rounding_part(plan), methods)
    if wanted not in bench.improving.found:
        bench.improving.found[wanted] = _find(bench, *wanted)
    return bench.improving.found[wanted]


def _any_target(op: str, precision: Precision) -> str:
    """A target that can do everything: what a graph gains does not depend on one."""
    del op, precision
    return ""


def _find(bench: Bench, plan: Plan, methods: Methods) -> Improved:
    reason = ""
    if not isinstance(bench.captured, CapturedModel):
        reason = "the model was captured in subgraphs, and a method looks across a whole graph"
    elif bench.loaded.frontend != "torch":
        reason = "the targets take this file as it is, and its weights are not torch's"
    else:
        bound = bind_plan(plan, bench.captured.table, op_problem=_any_target)
        examples = [example.tensors() for example in bench.calibration()]
        ranges = ranges_of(bench)
        style = most_rounding(targets_of(bench.recipe), plan, ranges)
        try:
            return improve(
                bench.captured, bound, methods, examples, ranges=ranges, reporter=bench.reporter, style=style
            )
        except (RuntimeError, ValueError, KeyError, TypeError, IndexError) as error:
            reason = f"the graph could not be simulated: {str(error).strip()[:200] or type(error).__name__}"
            bench.reporter.warn("not-improved", f"Improvements were not tried: {reason}", where="[improve] methods")
    left = (Improvement(method=str(one), precision=str(plan.default), reason=reason) for one in methods)
    return Improved(reports=tuple(left))
