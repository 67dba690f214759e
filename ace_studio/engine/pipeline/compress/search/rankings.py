"""Sensitivity rankings of search variants, and the reasons why the most sensitive ops stay at a high precision."""

from __future__ import annotations

from ace_studio.engine.pipeline.compress.candidates import make_candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.search import RankedOp, SensitivityRanking
from ace_studio.engine.pipeline.compress.search.variants import SearchVariant
from ace_studio.engine.pipeline.compress.sensitivity import sense_once
from ace_studio.engine.sensitivity import SIMULATED, noise_db
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Goal, Objective

_UNKNOWN_NOISE = 1e-3
"""Of every op, where nothing is known of any; what is built corrects it."""


def ranking_of(job: CompressionJob, variant: SearchVariant) -> SensitivityRanking:
    """The ranking of a variant, made at the first call: what has a product or a figure is a op."""
    if variant.ranking is None:
        variant.ranking = SensitivityRanking(_ranked_ops(job, variant))
    return variant.ranking


def _ranked_ops(job: CompressionJob, variant: SearchVariant) -> list[RankedOp]:
    table = job.captured.table
    planned = make_candidate(variant.target, variant.plan, table, device=job.captured.device).plan.precision
    low = sorted({precision for precision in planned.values() if precision in SIMULATED})
    noise = sense_once(job, low).noise
    costs = table.weight_bytes if job.recipe.goal.optimize is Objective.SIZE else table.flops
    ranked = []
    for row in table.op_rows():
        op_id = table.op_id[row]
        precision = planned.get(op_id, Precision.FP32)
        is_product = is_weighted(table.op[row])
        if precision in low and (is_product or op_id in noise.get(precision, {})):
            known = noise.get(precision, {}).get(op_id, _UNKNOWN_NOISE)
            ranked.append(RankedOp(op_id, known, float(max(1, costs[row]))))
    return ranked


def reasons_to_stay(job: CompressionJob, variant: SearchVariant, count: int) -> dict[str, str]:
    """Op id -> why it is kept high, for the step of the ranking that keeps ``count`` ops."""
    ranking = ranking_of(job, variant)
    is_known = bool(job.state.sensing and job.state.sensing.noise)
    wanted = _goal_words(job.recipe.goal)
    reasons = {}
    for place, op in enumerate(ranking.kept(count), 1):
        rank = f"{_ordinal(place)} most sensitive of {len(ranking)}, alone {noise_db(op.noise):.1f} dB"
        why = rank if is_known else "nothing is known of its sensitivity, and it costs little"
        reasons[op.op_id] = f"kept at {variant.high}: {why}; the goal {wanted}"
    return reasons


def _goal_words(goal: Goal) -> str:
    parts = []
    if goal.max_drop is not None:
        parts.append(f"allows the metric to drop by {goal.max_drop:.2%}")
    if goal.min_sqnr_db is not None:
        parts.append(f"needs {goal.min_sqnr_db:.1f} dB")
    return " and ".join(parts) or "has room for it"


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
