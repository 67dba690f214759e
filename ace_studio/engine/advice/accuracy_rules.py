"""Rules that improve the fidelity: ops that hold most of the error, better quantization, training."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ace_studio.engine.advice.facts import Facts
from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import FinetuneMethod, Objective, PruneMethod, ScanChoice

ENOUGH_DB = 40.0
"""Above this fidelity there is little to gain."""
_IMPROVEMENTS = {True: ("equalize", "compensate"), False: ("smoothquant", "compensate")}
_INTEGERS = frozenset({str(one) for one in Precision} - {"fp32", "fp16", "bf16"})


def keep_the_worst_ops(facts: Facts) -> Advice | None:
    """A few ops hold most of the error."""
    run = facts.run
    if run.precision not in _INTEGERS or (run.fidelity or 0.0) > ENOUGH_DB:
        return None
    noise, source = _noise(facts)
    ids, gain = worst_ops(noise, measured_db=run.fidelity)
    if not ids:
        return None
    listed = ", ".join(_named(facts, op_id) for op_id in ids)
    one = len(ids) == 1
    return Advice(
        kind="keep-ops-high",
        title=f"Keep {listed} at fp32",
        why=f"{'This op holds' if one else 'These ops hold'} {1 - 10 ** (-gain / 10):.0%} of the run's error. It "
        f"has {run.fidelity or 0.0:.1f} dB at {run.precision}, by {source} over {len(noise)} ops.",
        estimate=f"about {gain:.0f} dB closer to the original, for {_cost(facts, ids)}",
        quantity=AdviceQuantity.FIDELITY,
        estimated_gain=round(gain, 2),
        change={"plan": {"default": run.precision, "rules": _with_rules(facts, ids)}},
    )


def _noise(facts: Facts) -> tuple[list[tuple[str, float]], str]:
    """Op id and SQNR of the outputs if only this op is disturbed, from the scan or else from the run's ops."""
    lowered = {op.id for op in facts.run.ops if op.planned == facts.run.precision}
    scanned = [
        (one.id, one.sqnr_db)
        for one in facts.result.sensitivity
        if one.precision == facts.run.precision and (one.id in lowered or not lowered)
    ]
    if scanned:
        return scanned, "the sensitivity scan"
    return [(op.id, op.sensitivity_db) for op in facts.run.ops if op.sensitivity_db is not None], "its sensitivity"


def scan_the_ops(facts: Facts) -> Advice | None:
    """It is unknown which ops cause the error at the outputs; a scan finds them."""
    run = facts.run
    is_close = run.fidelity is None or run.fidelity > ENOUGH_DB
    if run.precision not in _INTEGERS or is_close or facts.is_lost_before_rounding or _noise(facts)[0]:
        return None
    goal = facts.recipe.goal
    if goal.min_sqnr_db is not None and not facts.misses_accuracy and goal.optimize is not Objective.ACCURACY:
        return None  # it is as close as was asked for
    if facts.recipe.sensitivity.scan is ScanChoice.ON or facts.result.capture is None or facts.result.capture.pieces:
        return None
    return Advice(
        kind="scan-ops",
        title="Find the ops that hold the error",
        why=f"The run has {run.fidelity:.1f} dB at {run.precision}, and no scan has shown which ops cause the error.",
        estimate="no number before the scan; afterwards a card says which ops to keep at fp32 and what that brings",
        quantity=AdviceQuantity.FIDELITY,
        change={"sensitivity": {"scan": str(ScanChoice.ON)}},
    )


def _named(facts: Facts, op_id: str) -> str:
    row = facts.table.op_id.index(op_id) if op_id in facts.table.op_id else None
    module = facts.table.module[row] if row is not None else ""
    return f"{op_id} ({module})" if module else op_id


def _cost(facts: Facts, ids: Sequence[str]) -> str:
    rows = [row for row, op_id in enumerate(facts.table.op_id) if op_id in ids]
    share = sum(facts.table.flops[row] for row in rows) / max(1, sum(facts.table.flops))
    return f"{share:.0%} of the arithmetic at fp32" if share >= 0.005 else "less than 1 % of the arithmetic at fp32"


def _with_rules(facts: Facts, ids: Sequence[str]) -> list[dict[str, Any]]:
    """The recipe's own rules, followed by one for each op."""
    own = [
        {"match": rule.match, "precision": str(rule.precision)}
        | {key: value for key in ("weights", "activations", "group_size") if (value := getattr(rule, key)) is not None}
        for rule in facts.recipe.plan.rules
    ]
    return [*own, *({"match": f"id:{op_id}", "precision": str(Precision.FP32)} for op_id in ids)]


def improve_the_quantization(facts: Facts) -> Advice | None:
    """Plain int8 is not accurate enough, and methods that improve it were not tried."""
    run = facts.run
    misses = facts.misses_accuracy or (run.fidelity is not None and run.fidelity < 20.0)
    if run.precision != Precision.INT8_STATIC or not misses or facts.is_onnx_file:
        return None
    wanted = _IMPROVEMENTS[facts.is_convolutional]
    have = tuple(str(one) for one in facts.recipe.improve.methods)
    new = [one for one in wanted if one not in have]
    if not new:
        return None
    return Advice(
        kind="improve",
        title=f"Try {' and '.join(new)} on int8",
        why=f"Plain int8 leaves {run.fidelity or 0.0:.1f} dB, and this network "
        + ("is mostly convolutions." if facts.is_convolutional else "is mostly matrix products."),
        estimate="often 1 to 3 dB; each is kept only if it helps, so nothing gets worse",
        quantity=AdviceQuantity.FIDELITY,
        estimated_gain=2.0,
        change={"improve": {"methods": [*have, *new]}},
    )


def train_after_pruning(facts: Facts) -> Advice | None:
    """Pruning cost accuracy that training can recover."""
    report = facts.result.pruning
    if report is None or facts.recipe.finetune.method is not FinetuneMethod.NONE or (report.sqnr_db or 0.0) > ENOUGH_DB:
        return None
    return Advice(
        kind="finetune-pruned",
        title="Train the pruned model to match the original",
        why=f"Pruning alone leaves {report.sqnr_db or 0.0:.1f} dB of the original's outputs.",
        estimate="some dB, more with more data; the best state is kept, so nothing gets worse",
        quantity=AdviceQuantity.FIDELITY,
        estimated_gain=3.0,
        change={"finetune": {"method": str(FinetuneMethod.DISTILL), "epochs": 10, "learning_rate": 0.001}},
        do_first=""
        if facts.has_training_data
        else "Name some hundred real inputs in [finetune] data or [calibration] inputs.",
    )


def prune_less(facts: Facts) -> Advice | None:
    """The pruned model misses the goal."""
    report, run, prune = facts.result.pruning, facts.run, facts.recipe.prune
    if report is None or not facts.misses_accuracy or prune.method is PruneMethod.N_M or prune.amount < 0.1:
        return None
    amount = round(prune.amount / 2, 3)
    drop = run.metric_drop if run.metric_drop and run.metric_drop > 0 else None
    lost = f"the metric drops by {drop:.2%}" if drop else f"the outputs have {run.fidelity or 0.0:.1f} dB"
    return Advice(
        kind="prune-less",
        title=f"Prune {amount:.0%} instead of {prune.amount:.0%}",
        why=f"Even before anything was quantized, pruning left {report.sqnr_db or 0.0:.1f} dB; in the end {lost}.",
        estimate="recovers more than half of the loss, and gives up about half of the saved arithmetic",
        quantity=AdviceQuantity.METRIC if drop else AdviceQuantity.FIDELITY,
        estimated_gain=round(0.6 * drop, 6) if drop else 6.0,
        change={"prune": {"amount": amount}},
    )


def train_longer(facts: Facts) -> Advice | None:
    """Training was still improving when it ended, and the goal is missed."""
    report, chosen = facts.result.finetune, facts.recipe.finetune
    if report is None or not report.kept or not facts.misses_accuracy or report.best_epoch < 0.8 * chosen.epochs:
        return None
    before, after = f"{report.before:.4g}", f"{report.after:.4g}"
    return Advice(
        kind="train-longer",
        title=f"Train for {3 * chosen.epochs} epochs",
        why=f"The {report.score_name} went from {before} to {after} and was best in epoch {report.best_epoch} of "
        f"{chosen.epochs}, so it was still improving.",
        estimate=f"uncertain; it takes about {3 * report.seconds:.0f} s, and the best state is kept",
        quantity=AdviceQuantity.FIDELITY,
        estimated_gain=1.0,
        change={"finetune": {"epochs": 3 * chosen.epochs, "max_seconds": max(chosen.max_seconds, 4 * report.seconds)}},
    )


def train_with_rounding(facts: Facts) -> Advice | None:
    """Int8 misses the goal, and training with its rounding was not tried."""
    run, recipe = facts.run, facts.recipe
    is_tried = recipe.finetune.method is not FinetuneMethod.NONE
    is_int8 = run.precision == Precision.INT8_STATIC and not facts.is_onnx_file
    if not facts.misses_accuracy or is_tried or not is_int8 or not facts.has_training_data:
        return None
    if recipe.prune.method is not PruneMethod.NONE:
        return None  # training the pruned model comes first, and has a card of its own
    return Advice(
        kind="train-with-rounding",
        title="Train with int8's rounding (QAT)",
        why=f"Int8 misses the goal with {run.fidelity or 0.0:.1f} dB, and the recipe names data to train on.",
        estimate="about 1 dB, more if a few layers are difficult; it is discarded if it does not help",
        quantity=AdviceQuantity.FIDELITY,
        estimated_gain=1.0,
        change={"finetune": {"method": str(FinetuneMethod.QAT), "learning_rate": 0.00003, "epochs": 8}},
    )


ACCURACY_RULES: tuple[Callable[[Facts], Advice | None], ...] = (
    keep_the_worst_ops,
    scan_the_ops,
    improve_the_quantization,
    train_after_pruning,
    prune_less,
    train_longer,
    train_with_rounding,
)


LEAST_GAIN_DB = 1.5
_MOST_OPS = 3
_FLOOR = 1e-30


def power(decibel: float) -> float:
    """Noise over signal for an SQNR in dB."""
    return math.pow(10.0, -decibel / 10.0)


def worst_ops(noise_db: Iterable[tuple[str, float]], *, measured_db: float | None = None) -> tuple[list[str], float]:
    """The ops (at most three, and a quarter of all) that gain most if kept at fp32, and their gain.

    Args:
        noise_db: Op id -> SQNR of the outputs if only this op is disturbed, dB.
        measured_db: SQNR of the run. Noise beyond the sum of the ops' (of outputs that are rounded too) stays.

    Returns: The ids, the worst first, and the gain in dB. An op is taken only if it gains 1.5 dB more.
    Source: noise powers of independent roundings add; predicted 14.7 dB and measured 16.0 dB on ResNet50.
    """
    ranked = sorted(noise_db, key=lambda pair: pair[1])
    total = max(sum(power(value) for _, value in ranked), 0.0 if measured_db is None else power(measured_db))
    left, chosen, gain = total, [], 0.0
    for op_id, value in ranked[: max(1, min(_MOST_OPS, len(ranked) // 4))]:
        after = max(left - power(value), total * _FLOOR, _FLOOR)
        more = 10.0 * math.log10(left / after) if left > 0 else 0.0
        if more < LEAST_GAIN_DB:
            break
        chosen.append(op_id)
        gain, left = gain + more, after
    return chosen, min(gain, 60.0)
