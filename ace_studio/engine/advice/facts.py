"""What the rules of advice look at: one finished run, its recipe, its graph, and this machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ace_studio.records.goals import ACCURACY_BOUNDS, GoalBound, misses, run_figures
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import TargetReport
from ace_studio.records.ops import CONVOLUTIONS, MATRIX_PRODUCTS, operator_name
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Objective, Recipe
from ace_studio.records.results import Result, RunStatus, TargetRun
from ace_studio.records.targets import targets_for

PRECISION_ORDER = (
    Precision.INT8_STATIC,
    Precision.INT8_DYNAMIC,
    Precision.INT8_WEIGHT,
    Precision.BF16,
)


@dataclass(frozen=True)
class Facts:
    """One finished run. Rules only read it."""

    result: Result
    recipe: Recipe
    table: GraphTable
    targets: tuple[TargetReport, ...] = ()
    """What this machine has and lacks."""
    cores: int = 1
    has_pruning_library: bool = False

    @cached_property
    def chosen(self) -> TargetRun | None:
        """The run that was chosen."""
        return None if self.result.chosen is None else self.result.runs[self.result.chosen]

    @property
    def run(self) -> TargetRun:
        """The chosen run; rules are asked only if there is one."""
        assert self.chosen is not None
        return self.chosen

    @cached_property
    def tried(self) -> frozenset[str]:
        """Precisions that were built and measured, steps of a search included; also those of parts of a plan."""
        measured = (RunStatus.OK, RunStatus.DROPPED)
        runs = [run for run in self.result.runs if run.status in measured and run.latency_ms]
        return frozenset(part for run in runs for part in run.precision.split(" + "))

    @cached_property
    def failed(self) -> frozenset[tuple[str, str]]:
        """Target and precision of the runs that could not be built, or gave wrong results."""
        wrong = (RunStatus.FAILED, RunStatus.UNAVAILABLE)
        return frozenset((run.target, run.precision) for run in self.result.runs if run.status in wrong)

    @cached_property
    def is_onnx_file(self) -> bool:
        """Whether the model is an ONNX file: nothing can be trained then, and not every target takes it."""
        return any(op.startswith("onnx.") for op in self.table.op)

    @property
    def fitting_targets(self) -> tuple[TargetReport, ...]:
        """The targets, here or not, that take such a model."""
        fitting = targets_for("onnx" if self.is_onnx_file else "torch")
        return tuple(target for target in self.targets if target.name in fitting)

    @cached_property
    def is_convolutional(self) -> bool:
        """Whether most of the arithmetic is in convolutions."""
        return self._flops_of(CONVOLUTIONS) > 0.5 * max(1, sum(self.table.flops))

    @cached_property
    def layer_flops_share(self) -> float:
        """Part of the arithmetic that is in convolutions and linear layers, 0..1."""
        return self._flops_of(CONVOLUTIONS | MATRIX_PRODUCTS) / max(1, sum(self.table.flops))

    @cached_property
    def matrix_weight_share(self) -> float:
        """Part of the weights' bytes that linear layers read, 0..1."""
        return self._weight_share(MATRIX_PRODUCTS)

    @cached_property
    def layer_weight_share(self) -> float:
        """Part of the weights' bytes that convolutions and linear layers read, 0..1."""
        return self._weight_share(CONVOLUTIONS | MATRIX_PRODUCTS)

    def _weight_share(self, names: frozenset[str]) -> float:
        rows = [row for row, op in enumerate(self.table.op) if operator_name(op) in names]
        return sum(self.table.weight_bytes[row] for row in rows) / max(1, sum(self.table.weight_bytes))

    def _flops_of(self, names: frozenset[str]) -> int:
        pairs = zip(self.table.op, self.table.flops, strict=True)
        return sum(flops for op, flops in pairs if operator_name(op) in names)

    @property
    def objective(self) -> Objective:
        """What the recipe wants most."""
        return self.recipe.goal.optimize

    @cached_property
    def is_lost_before_rounding(self) -> bool:
        """Whether pruning, trained or not, left the model about as far from the original as the chosen run is."""
        pruned, tuned, run = self.result.pruning, self.result.finetune, self.run
        if pruned is None or run.sqnr_db is None:
            return False
        left = pruned.sqnr_db
        if tuned is not None:
            left = tuned.after if tuned.score_name == "held-out SQNR" else None
        return left is not None and left < run.sqnr_db + 3.0

    @cached_property
    def missed(self) -> frozenset[GoalBound]:
        """The bounds that the chosen run misses."""
        figures = run_figures(self.run, self.result.baseline)
        return frozenset(miss.bound for miss in misses(figures, self.recipe.goal))

    @property
    def misses_accuracy(self) -> bool:
        """Whether the chosen run misses a bound on accuracy."""
        return bool(self.missed & ACCURACY_BOUNDS)

    @property
    def misses_size(self) -> bool:
        """Whether the chosen run misses the bound on size."""
        return GoalBound.SIZE in self.missed

    @property
    def wants_smaller(self) -> bool:
        """Whether bytes count more than time: the bound on size is missed, or the recipe wants the smallest."""
        return self.misses_size or self.objective is Objective.SIZE

    @cached_property
    def has_slack(self) -> bool:
        """Whether some accuracy can be given: half of what may drop is left, or 3 dB, or nothing is demanded."""
        goal, run = self.recipe.goal, self.run
        if goal.max_drop is not None and not (run.metric_drop is not None and run.metric_drop <= goal.max_drop / 2):
            return False
        return goal.min_sqnr_db is None or (run.sqnr_db is not None and run.sqnr_db >= goal.min_sqnr_db + 3)

    def can(self, precision: Precision) -> list[str]:
        """Targets of this machine that can do a precision and did not fail at it, of those that the recipe lets in."""
        wanted = self.recipe.targets.names
        return [
            one.name
            for one in self.fitting_targets
            if one.available
            and not one.precisions.get(str(precision), "no")
            and ({"auto", one.name} & set(wanted))
            and (one.name, str(precision)) not in self.failed
        ]
