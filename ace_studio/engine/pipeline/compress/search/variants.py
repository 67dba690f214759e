"""Which low precisions a goal search tries on a target, judged by the ops of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.search import SensitivityRanking
from ace_studio.engine.targets.base import Target
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ImproveMethod, Objective
from ace_studio.records.results import SearchStep

FEW_USES = 4
"""Multiplications per weight up to which reading the weights takes longer than using them."""
MANY_FLOAT_OPS = 4
_FLOAT_OPS = (
    "aten.layer_norm", "aten.native_layer_norm", "aten.group_norm", "aten.rms_norm", "aten.softmax", "aten._softmax",
    "aten.gelu", "aten.silu", "aten.scaled_dot_product_attention", "aten.pow", "aten.rsqrt", "aten.sigmoid",
)  # fmt: skip
_LOW = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)
_SMALL = (Precision.INT4_WEIGHT, Precision.INT8_WEIGHT)


METHODS_TO_TRY: Mapping[Precision, tuple[ImproveMethod, ...]] = {
    Precision.INT8_STATIC: (ImproveMethod.EQUALIZE, ImproveMethod.SMOOTHQUANT, ImproveMethod.BIAS_CORRECTION),
    Precision.INT8_DYNAMIC: (ImproveMethod.EQUALIZE, ImproveMethod.SMOOTHQUANT, ImproveMethod.BIAS_CORRECTION),
    Precision.INT8_WEIGHT: (ImproveMethod.BIAS_CORRECTION,),
    Precision.INT4_WEIGHT: (ImproveMethod.GPTQ, ImproveMethod.BIAS_CORRECTION),
}
"""What a search tries by itself where a low precision is not accurate enough: it costs no time when the model runs."""


@dataclass
class SearchVariant:
    """One low precision (or the recipe's plan) on one target."""

    target: Target
    plan: Plan
    high: Precision = Precision.FP32
    ranking: SensitivityRanking | None = None
    steps: list[SearchStep] = field(default_factory=list)
    methods: tuple[ImproveMethod, ...] = ()
    """What improves its weights."""

    @property
    def name(self) -> str:
        """``openvino int8-static``."""
        return f"{self.target.name} {self.plan.label}"


def variants_of(job: CompressionJob, target: Target) -> list[SearchVariant]:
    """Those that the target can do and that may win; what the recipe itself plans is tried in any case."""
    variants = [SearchVariant(target, plan, methods=job.recipe.improve.methods) for plan in _bases(job)]
    if not job.recipe.plan.from_goal or not target.available().ok:
        return variants
    variants = [variant for variant in variants if not target.precision_problem(variant.plan.default)]
    if target.precision_problem(Precision.BF16) or not has_much_besides_products(job.captured.table):
        return variants
    halves = [msgspec.structs.replace(variant.plan, rest=Precision.BF16) for variant in variants]
    return [*variants, *(SearchVariant(target, plan, methods=job.recipe.improve.methods) for plan in halves)]


def _bases(job: CompressionJob) -> list[Plan]:
    recipe = job.recipe
    if not recipe.plan.from_goal:
        return [recipe.plan]
    wants_small = (
        recipe.goal.optimize is Objective.SIZE
        or recipe.goal.max_size_mb is not None
        or reads_weights_most(job.captured.table)
    )
    grids = msgspec.structs.replace(recipe.plan, from_goal=False, rules=())
    return [msgspec.structs.replace(grids, default=low) for low in (*_LOW, *(_SMALL if wants_small else ()))]


def has_much_besides_products(table: GraphTable) -> bool:
    """Whether ops that no target has at 8 bits take a share of the time: norms, softmax, the curves of transformers."""
    return sum(table.op[row].startswith(_FLOAT_OPS) for row in table.op_rows()) >= MANY_FLOAT_OPS


def reads_weights_most(table: GraphTable) -> bool:
    """Whether the time goes into reading weights, each of which is used a few times only (one token of a decoder).

    Then smaller weights are faster ones, and computing in float costs nothing.
    """
    rows = [row for row in table.op_rows() if is_weighted(table.op[row]) and table.weight_bytes[row] > 0]
    uses = sum(table.flops[row] for row in rows) / 2
    weights = sum(table.weight_bytes[row] for row in rows) / 4
    return 0 < uses <= FEW_USES * weights
