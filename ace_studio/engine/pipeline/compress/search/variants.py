"""The low precisions that a goal search tries on a target."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.targets.base import Target
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import Goal, ImproveMethod

FEW_USES = 4
"""Multiplications per weight up to which reading the weights takes longer than using them."""
MANY_FLOAT_OPS = 4
LEAST_SHARE = 0.1
"""Part of the arithmetic that a precision must take to be built where speed is wanted: less saves hardly any time."""
_FLOAT_OPS = (
    "aten.layer_norm", "aten.native_layer_norm", "aten.group_norm", "aten.rms_norm", "aten.softmax", "aten._softmax",
    "aten.gelu", "aten.silu", "aten.scaled_dot_product_attention", "aten.pow", "aten.rsqrt", "aten.sigmoid",
)  # fmt: skip
_LOW = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)
_SMALL = (Precision.INT4_WEIGHT, Precision.INT8_WEIGHT)


METHODS_TO_TRY: Mapping[Precision, tuple[ImproveMethod, ...]] = {
    Precision.INT8_STATIC: (ImproveMethod.EQUALIZE, ImproveMethod.SMOOTHQUANT, ImproveMethod.COMPENSATE),
    Precision.INT8_DYNAMIC: (ImproveMethod.EQUALIZE, ImproveMethod.SMOOTHQUANT, ImproveMethod.COMPENSATE),
    Precision.INT8_WEIGHT: (ImproveMethod.LEARNED_ROUNDING, ImproveMethod.COMPENSATE),
    Precision.INT4_WEIGHT: (ImproveMethod.GPTQ, ImproveMethod.LEARNED_ROUNDING, ImproveMethod.COMPENSATE),
}
"""What a search tries by itself where a low precision is not accurate enough: it costs no time when the model runs."""


@dataclass
class SearchVariant:
    """One low precision (or the recipe's plan) on one target."""

    target: Target
    plan: Plan
    methods: tuple[ImproveMethod, ...] = ()
    """What improves its weights."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of its target: how it is built otherwise than usual."""

    @property
    def name(self) -> str:
        """``openvino int8-static``."""
        return f"{self.target.name} {self.plan.label}"


def variants_of(job: CompressionJob, target: Target) -> list[SearchVariant]:
    """The recipe's own plan in any case; else the low precisions that the target supports and that may win."""
    recipe = job.recipe
    plans = [recipe.plan]
    if recipe.plan.from_goal:
        plans = _low_plans(job)
        if target.available().ok:
            plans = [plan for plan in plans if not target.precision_problem(plan.default)]
            if not recipe.goal.wants_small:
                worth = [plan for plan in plans if is_worth_a_build(plan, job.captured.table, target)]
                plans = worth or (plans if job.state.has_data else [])
            if not target.precision_problem(Precision.BF16) and has_much_besides_products(job.captured.table):
                rests = (Precision.FP32, Precision.BF16)
                plans = [msgspec.structs.replace(plan, rest=rest) for plan in plans for rest in rests]
    return [SearchVariant(target, plan, methods=recipe.improve.methods) for plan in plans]


def _low_plans(job: CompressionJob) -> list[Plan]:
    small = _SMALL if job.recipe.goal.wants_small or reads_weights_most(job.captured.table) else ()
    lows = [low for low in (*_LOW, *small) if job.state.has_data or not low.needs_calibration]
    return [msgspec.structs.replace(job.recipe.plan, from_goal=False, rules=(), default=low) for low in lows]


def is_worth_a_build(plan: Plan, table: GraphTable, target: Target) -> bool:
    """Whether a target computes enough of the graph at the plan's precision for it to save time.

    Convolutions have no int8-dynamic kernel anywhere: in a convolutional network the last layer alone would have it.
    """
    low = bind_plan(plan, table, op_problem=target.op_problem).ops_at(plan.default)
    own = sum(table.flops[row] for row in table.op_rows() if table.op_id[row] in low)
    return own >= LEAST_SHARE * sum(table.flops[row] for row in table.op_rows())


def has_much_besides_products(table: GraphTable) -> bool:
    """Whether ops that no target has at 8 bits take much time: norms, softmax and the activations of transformers."""
    return sum(table.op[row].startswith(_FLOAT_OPS) for row in table.op_rows()) >= MANY_FLOAT_OPS


def reads_weights_most(table: GraphTable) -> bool:
    """Whether most time goes into reading weights that are used a few times each (one token of a decoder).

    Then smaller weights are faster ones, and computing in float costs nothing.
    """
    rows = [row for row in table.op_rows() if is_weighted(table.op[row]) and table.weight_bytes[row] > 0]
    uses = sum(table.flops[row] for row in rows) / 2
    weights = sum(table.weight_bytes[row] for row in rows) / 4
    return 0 < uses <= FEW_USES * weights


def goal_words(goal: Goal) -> str:
    """What the goal says of accuracy: ``needs 30.0 dB``."""
    parts = []
    if goal.max_drop is not None:
        parts.append(f"allows the metric to drop by {goal.max_drop:.2%}")
    if goal.min_sqnr_db is not None:
        parts.append(f"needs {goal.min_sqnr_db:.1f} dB")
    return " and ".join(parts) or "has room for it"
