"""Rules that win fidelity back: when each gives a card, what it estimates, and that its change fits the recipe."""

import pytest
from msgspec.structs import replace

from ace_studio.engine.advice.accuracy_rules import (
    improve_the_quantization,
    keep_the_worst_ops,
    power,
    prune_less,
    scan_the_ops,
    train_after_pruning,
    train_longer,
    train_with_rounding,
    worst_ops,
)
from ace_studio.records.advice import AdviceQuantity
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import (
    CalibrationChoice,
    FinetuneChoice,
    FinetuneMethod,
    Goal,
    Objective,
    PruneChoice,
    PruneMethod,
)
from ace_studio.records.results.finetuning import FinetuneReport
from ace_studio.records.results.pruning import PruningReport
from ace_studio.records.tensors import DimVerdict
from tests.engine.advice.finished_run import FLOAT_RUN, RECIPE, RUN, applies, captured, facts, op_report, scan, table


def test_the_op_that_holds_the_error_is_kept_high_behind_the_users_own_rules():
    own = PlanRule(match="module:head", precision=Precision.BF16, group_size=64)
    recipe = replace(RECIPE, plan=Plan(default=Precision.INT8_STATIC, rules=(own,)))
    given = facts(recipe=recipe, sensitivity=scan(12.0, 30.0, 31.0))
    card = keep_the_worst_ops(given)
    assert "conv2d (stem)" in card.title and card.quantity is AdviceQuantity.FIDELITY
    left = power(30) + power(31)
    assert 10 ** (card.estimated_gain / 10) == pytest.approx((power(12) + left) / left, rel=1e-2)
    assert "67% of the arithmetic" in card.estimate
    plan = applies(card, given).plan
    assert plan.default is Precision.INT8_STATIC and plan.rules == (
        own,
        PlanRule(match="id:conv2d", precision=Precision.FP32),
    )


def test_ops_are_not_kept_high_where_the_run_is_close_or_a_float_or_nothing_was_scanned():
    sensitivity = scan(12.0, 30.0, 31.0)
    assert keep_the_worst_ops(facts(replace(RUN, sqnr_db=45.0), sensitivity=sensitivity)) is None
    assert keep_the_worst_ops(facts(FLOAT_RUN, sensitivity=sensitivity)) is None
    assert keep_the_worst_ops(facts()) is None


def test_where_nobody_knows_which_ops_hold_the_error_a_scan_is_advised():
    given = facts(capture=captured(DimVerdict.DYNAMIC))
    card = scan_the_ops(given)
    assert card.change and not card.do_first and card.estimated_gain is None and "12.0 dB" in card.why
    after = applies(card, given)
    assert after.sensitivity.scan == "on"
    assert scan_the_ops(facts(recipe=after, capture=captured(DimVerdict.DYNAMIC))) is None
    scanned = facts(capture=captured(DimVerdict.DYNAMIC), sensitivity=scan(12.0, 30.0, 31.0))
    assert scan_the_ops(scanned) is None and keep_the_worst_ops(scanned) is not None
    assert scan_the_ops(facts(FLOAT_RUN, capture=captured(DimVerdict.DYNAMIC))) is None


def test_no_scan_is_advised_for_a_run_that_is_as_close_as_was_asked_for():
    recipe = replace(RECIPE, goal=Goal(min_sqnr_db=10.0))
    assert scan_the_ops(facts(recipe=recipe, capture=captured(DimVerdict.DYNAMIC))) is None
    accurate = replace(RECIPE, goal=Goal(min_sqnr_db=10.0, optimize=Objective.ACCURACY))
    assert scan_the_ops(facts(recipe=accurate, capture=captured(DimVerdict.DYNAMIC))) is not None


def test_no_scan_is_advised_where_pruning_lost_what_is_missing():
    graph = {"capture": captured(DimVerdict.DYNAMIC)}
    pruned = PruningReport(method="structured", amount=0.3, sqnr_db=13.0)
    assert scan_the_ops(facts(pruning=pruned, **graph)) is None
    assert scan_the_ops(facts(pruning=replace(pruned, sqnr_db=30.0), **graph)) is not None
    tuned = FinetuneReport(
        method="distill", score_name="held-out SQNR", higher_is_better=True, before=1.0, after=30.0, kept=True,
        reason="", seconds=1.0,
    )  # fmt: skip
    assert scan_the_ops(facts(pruning=pruned, finetune=tuned, **graph)) is not None


def test_only_ops_that_the_run_really_lowered_are_counted():
    ops = (op_report("conv2d", planned="fp32"), op_report("conv2d_1", planned="int8-static"))
    assert keep_the_worst_ops(facts(replace(RUN, ops=ops), sensitivity=scan(5.0, 12.5, 50.0))).title == (
        "Keep conv2d_1 (body) at fp32"
    )


def test_improvements_fit_the_kind_of_network_and_are_not_repeated():
    given = facts()
    card = improve_the_quantization(given)
    assert card.change == {"improve": {"methods": ["equalize", "compensate"]}}
    assert improve_the_quantization(facts(recipe=applies(card, given))) is None
    matrices = table(ops=("aten.linear.default",) * 3)
    assert "smoothquant" in improve_the_quantization(facts(graph=matrices)).title
    assert improve_the_quantization(facts(replace(RUN, sqnr_db=30.0))) is None


def test_training_is_advised_after_pruning_alone_and_needs_data():
    pruning = PruningReport(method="structured", amount=0.3, sqnr_db=8.0)
    card = train_after_pruning(facts(pruning=pruning))
    assert "8.0 dB" in card.why and card.do_first
    with_data = replace(RECIPE, calibration=CalibrationChoice(inputs="data"))
    given = facts(recipe=with_data, pruning=pruning)
    card = train_after_pruning(given)
    assert card.change and not card.do_first
    assert train_after_pruning(facts(recipe=applies(train_after_pruning(given), given), pruning=pruning)) is None
    assert train_after_pruning(facts()) is None


def test_rounding_in_training_is_for_goals_that_int8_misses():
    recipe = replace(RECIPE, calibration=CalibrationChoice(inputs="data"), goal=Goal(min_sqnr_db=20.0))
    given = facts(recipe=recipe)
    assert applies(train_with_rounding(given), given).finetune.method == "qat"
    assert train_with_rounding(facts(replace(RUN, sqnr_db=25.0), recipe=recipe)) is None
    assert train_with_rounding(facts(recipe=replace(recipe, calibration=CalibrationChoice()))) is None


def test_a_pruned_model_that_misses_the_goal_is_pruned_less():
    recipe = replace(RECIPE, goal=Goal(max_drop=0.01), prune=PruneChoice(method=PruneMethod.STRUCTURED, amount=0.3))
    pruning = PruningReport(method="structured", amount=0.3, sqnr_db=5.0)
    given = facts(replace(RUN, metric_drop=0.1), recipe=recipe, pruning=pruning)
    card = prune_less(given)
    assert "10.00%" in card.why and (card.quantity, card.estimated_gain) == (AdviceQuantity.METRIC, 0.06)
    assert applies(card, given).prune.amount == 0.15
    assert prune_less(facts(replace(RUN, metric_drop=0.0), recipe=recipe, pruning=pruning)) is None


def test_training_that_was_still_getting_better_goes_on():
    recipe = replace(RECIPE, goal=Goal(min_sqnr_db=30.0), finetune=FinetuneChoice(method=FinetuneMethod.DISTILL))
    report = FinetuneReport(
        method="distill", score_name="held-out SQNR", higher_is_better=True, before=5.0, after=9.0, kept=True,
        reason="", best_epoch=3, seconds=400.0,
    )  # fmt: skip
    given = facts(recipe=recipe, finetune=report)
    finetune = applies(train_longer(given), given).finetune
    assert (finetune.epochs, finetune.max_seconds) == (9, 1600.0)
    assert train_longer(facts(recipe=recipe, finetune=replace(report, best_epoch=1))) is None
    assert train_longer(facts(recipe=recipe)) is None


def test_noise_powers_add_and_what_is_left_decides_the_gain():
    rest = [(str(index), 40.0) for index in range(6)]
    ids, gain = worst_ops([("a", 10.0), ("b", 20.0), *rest])
    assert ids == ["a", "b"]
    assert 10 ** (gain / 10) == pytest.approx((power(10) + power(20) + 6 * power(40)) / (6 * power(40)))


def test_error_that_comes_from_none_of_the_ops_stays():
    noise = [("a", 20.0), *((str(index), 40.0) for index in range(6))]
    assert worst_ops(noise, measured_db=10.0) == ([], 0.0)  # ten times as much as all of them together
    assert worst_ops(noise, measured_db=19.0)[0] == ["a"]


def test_noise_that_is_spread_evenly_names_nobody():
    assert worst_ops([(str(index), 20.0) for index in range(20)]) == ([], 0.0)
    assert worst_ops([]) == ([], 0.0)
