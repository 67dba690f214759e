"""The facts that the rules of advice read: one finished run, its recipe, its graph, and this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ace_studio.records.goals import ACCURACY_BOUNDS, GoalBound, misses, run_figures
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import TargetReport
from ace_studio.records.ops import CONVOLUTIONS, MATRIX_PRODUCTS, operator_name
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Objective, Recipe
from ace_studio.records.results import Result, RunStatus, TargetRun
from ace_studio.records.results.finetuning import HELD_OUT_SQNR
from ace_studio.records.targets import targets_for

_QUANTIZED = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulNBits"})
PRECISION_ORDER = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT, Precision.BF16)


@dataclass(frozen=True)
class Facts:
    """One finished run. Rules only read it."""

    result: Result
    recipe: Recipe
    table: GraphTable
    targets: tuple[TargetReport, ...] = ()
    """The targets of this machine, installed or not."""
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
        """Precisions that were built and measured, also by a search, and those of parts of a plan."""
        measured = (RunStatus.OK, RunStatus.DROPPED)
        runs = [run for run in self.result.runs if run.status in measured and run.latency_ms]
        return frozenset(part for run in runs for part in run.precision.split(" + "))

    @cached_property
    def run_precisions(self) -> frozenset[str]:
        """Precisions that ops of the chosen run have."""
        return frozenset(self.run.op_precisions or {self.run.precision.partition(" + ")[0]})

    @cached_property
    def failed(self) -> frozenset[tuple[str, str]]:
        """Target and precision of the runs that could not be built or gave wrong results."""
        wrong = (RunStatus.FAILED, RunStatus.UNAVAILABLE)
        return frozenset((run.target, run.precision) for run in self.result.runs if run.status in wrong)

    @cached_property
    def is_onnx_file(self) -> bool:
        """Whether the model is an ONNX file: it cannot be trained, and not every target takes it."""
        return any(op.startswith("onnx.") for op in self.table.op)

    @cached_property
    def is_quantized_file(self) -> bool:
        """Whether the model is an ONNX file with quantized layers, as an artifact that is opened again."""
        return self.is_onnx_file and any(op.rpartition(".")[2] in _QUANTIZED for op in self.table.op)

    @property
    def fitting_targets(self) -> tuple[TargetReport, ...]:
        """The targets, installed or not, that take such a model."""
        fitting = targets_for("onnx" if self.is_onnx_file else "torch")
        return tuple(target for target in self.targets if target.name in fitting)

    @cached_property
    def is_convolutional(self) -> bool:
        """Whether most of the arithmetic is in convolutions."""
        return self._share(self.table.flops, CONVOLUTIONS) > 0.5

    @cached_property
    def layer_flops_share(self) -> float:
        """Share of the arithmetic in convolutions and linear layers, 0..1."""
        return self._share(self.table.flops, CONVOLUTIONS | MATRIX_PRODUCTS)

    @cached_property
    def matrix_weight_share(self) -> float:
        """Share of the weight bytes that linear layers read, 0..1."""
        return self._share(self.table.weight_bytes, MATRIX_PRODUCTS)

    @cached_property
    def layer_weight_share(self) -> float:
        """Share of the weight bytes that convolutions and linear layers read, 0..1."""
        return self._share(self.table.weight_bytes, CONVOLUTIONS | MATRIX_PRODUCTS)

    def _share(self, column: Sequence[int], names: frozenset[str]) -> float:
        pairs = zip(self.table.op, column, strict=True)
        return sum(value for op, value in pairs if operator_name(op) in names) / max(1, sum(column))

    @property
    def objective(self) -> Objective:
        """What the goal optimizes."""
        return self.recipe.goal.optimize

    @property
    def has_training_data(self) -> bool:
        """Whether the recipe names data to train on."""
        calibration = self.recipe.calibration
        return bool(calibration.inputs or calibration.caught or self.recipe.finetune.data)

    @property
    def bytes_per_weight(self) -> float:
        """Stored bytes of a weight of the chosen run."""
        return {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0}.get(self.run.precision, 1.0)

    @cached_property
    def is_lost_before_rounding(self) -> bool:
        """Whether pruning, trained or not, left the model about as far from the original as the chosen run is."""
        pruned, tuned, run = self.result.pruning, self.result.finetune, self.run
        if pruned is None or run.fidelity is None:
            return False
        left = pruned.sqnr_db
        if tuned is not None:
            left = tuned.after if tuned.score_name == HELD_OUT_SQNR else None
        return left is not None and left < run.fidelity + 3.0

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
        """Whether accuracy can be traded: half of the allowed drop or 3 dB is left, or no bound is set."""
        goal, run = self.recipe.goal, self.run
        if goal.max_drop is not None and not (run.metric_drop is not None and run.metric_drop <= goal.max_drop / 2):
            return False
        return goal.min_sqnr_db is None or (run.fidelity is not None and run.fidelity >= goal.min_sqnr_db + 3)

    def can(self, precision: Precision) -> list[str]:
        """Targets of this machine that the recipe allows, that support a precision and did not fail at it."""
        if self.is_quantized_file:
            return []
        names = self.recipe.targets.names
        return [
            one.name
            for one in self.fitting_targets
            if one.available
            and not one.precisions.get(str(precision), "no")
            and ("auto" in names or one.name in names)
            and (one.name, str(precision)) not in self.failed
        ]
