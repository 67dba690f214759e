"""Improved weights of a job: found once for plans that round the same way, and built into every candidate of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ace_studio.engine.flow import BoundPlan, Captured, CapturedModel, Example
from ace_studio.engine.improve import SIMULATION_ERRORS, Improved, improve, with_changed_weights
from ace_studio.engine.improve.job import HIGH
from ace_studio.engine.pipeline.sensitivity import targets_of
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.targets.shared.int8_styles import most_rounding
from ace_studio.records.errors import message_of
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod, Recipe
from ace_studio.records.results import Improvement

Methods = tuple[ImproveMethod, ...]


@dataclass
class Improvements:
    """Finds improved weights for plans and keeps what it found."""

    captured: Captured
    recipe: Recipe
    calibration: Callable[[], Sequence[Example]]
    reporter: Reporter
    _found: dict[tuple[Plan, Methods], Improved] = field(default_factory=dict)
    """By plan, without what is float in it, and by the methods that were tried."""
    _by_targets: list[Improvement] = field(default_factory=list)
    _built: tuple[object, CapturedModel, dict[str, Any]] | None = None
    """The capture with improved weights that was built last: its key, itself, and what targets share of it."""

    @property
    def reports(self) -> tuple[Improvement, ...]:
        """The outcome of every method, plan by plan, then what targets did with methods of their own."""
        found = [report for improved in self._found.values() for report in improved.reports]
        return (*found, *self._by_targets)

    def add_by_target(self, reports: Sequence[Improvement]) -> None:
        """Add what a target did with methods of its own."""
        self._by_targets += reports

    def capture_for(
        self, plan: BoundPlan, methods: Methods, captured: CapturedModel, shared: dict[str, Any]
    ) -> tuple[CapturedModel, dict[str, Any]]:
        """The capture that a plan is lowered from, with the weights found for it, and what its targets share.

        Without improvements, or where none helps, these are ``captured`` and ``shared`` themselves.
        """
        if not methods or not plan.precisions - HIGH:
            return captured, shared
        improved = self._improved(plan.plan, methods)
        if not improved.changes:
            return captured, shared

        def is_low(op_id: str) -> bool:
            return plan.precision_of(op_id) not in HIGH

        owners = {op_id for change in improved.changes for op_id in change.owners.values()}
        key = (_rounding_part(plan.plan), methods, frozenset(op_id for op_id in owners if is_low(op_id)))
        if self._built is None or self._built[0] != key:
            self._built = (key, with_changed_weights(captured, improved.changes, is_low=is_low), {})
        return self._built[1], self._built[2]

    def methods_that_help(self, plan: Plan, methods: Methods) -> Methods:
        """Those of the methods that bring the simulated plan closer to the original; found once for each plan."""
        return tuple(ImproveMethod(one.method) for one in self._improved(plan, methods).reports if one.kept)

    def are_known(self, plan: Plan, methods: Methods) -> bool:
        """Whether the methods were tried on the plan already, for another target."""
        return (_rounding_part(plan), methods) in self._found

    def methods_left(self, plan: BoundPlan, methods: Methods) -> frozenset[ImproveMethod]:
        """The methods that found nothing to do in the graph; a target may have its own way to do them."""
        improved = self._found.get((_rounding_part(plan.plan), methods))
        if improved is None:
            return frozenset()
        return frozenset(ImproveMethod(one.method) for one in improved.reports if one.after_db is None)

    def _improved(self, plan: Plan, methods: Methods) -> Improved:
        key = (_rounding_part(plan), methods)
        if key not in self._found:
            self._found[key] = self._find(*key)
        return self._found[key]

    def _find(self, plan: Plan, methods: Methods) -> Improved:
        reason, captured = self.captured.improvement_problem, self.captured.torch_graph
        if not reason and captured is not None:
            try:
                return self._improve(captured, plan, methods)
            except SIMULATION_ERRORS as error:
                reason = f"the graph could not be simulated: {message_of(error, limit=200) or type(error).__name__}"
                self.reporter.warn("not-improved", f"Improvements were not tried: {reason}", where="[improve] methods")
        left = (Improvement(method=str(one), precision=str(plan.default), reason=reason) for one in methods)
        return Improved(reports=tuple(left))

    def _improve(self, captured: CapturedModel, plan: Plan, methods: Methods) -> Improved:
        bound = bind_plan(plan, captured.table, op_problem=any_target)
        examples = [example.tensors() for example in self.calibration()]
        ranges = ranges_of(self.recipe)
        style = most_rounding(target.int8_style(plan, ranges) for target in targets_of(self.recipe))
        return improve(
            captured,
            bound,
            methods,
            examples,
            ranges=ranges,
            reporter=self.reporter,
            style=style,
            max_seconds=self.recipe.improve.max_seconds,
        )


def ranges_of(recipe: Recipe) -> RangeChoice:
    """How ranges follow from observed values."""
    return RangeChoice(recipe.calibration.observer, percentile=recipe.calibration.percentile)


def _rounding_part(plan: Plan) -> Plan:
    """The plan without what is float in it: plans of a search that differ only there share improvements."""
    low = tuple(rule for rule in plan.rules if rule.precision not in HIGH)
    return msgspec.structs.replace(plan, rules=low, rest=Precision.FP32)


def any_target(_op: str, _precision: Precision) -> str:
    """No op is a problem: the gain in a graph does not depend on a target."""
    return ""
