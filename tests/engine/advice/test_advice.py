"""Cards of advice: when each rule speaks, what it estimates, and that its change fits the recipe."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ace_studio.engine.advice import Facts, advise
from ace_studio.engine.advice.accuracy_rules import (
    improve_the_quantization,
    keep_the_worst_ops,
    prune_less,
    scan_the_ops,
    train_after_pruning,
    train_longer,
    train_with_rounding,
)
from ace_studio.engine.advice.noise import power, worst_ops
from ace_studio.engine.advice.speed_rules import (
    lower_the_precision,
    mend_the_break,
    move_fewer_bytes,
    store_smaller_weights,
    take_channels_away,
    use_another_target,
    use_more_threads,
)
from ace_studio.engine.advice.trust_rules import free_the_batch, give_calibration_data
from ace_studio.records.advice import AdviceQuantity
from ace_studio.records.advice_applied import applied_recipe
from ace_studio.records.goals import GoalBound
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.messages import TargetReport
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import (
    AdviceOrigin,
    CalibrationChoice,
    FinetuneChoice,
    FinetuneMethod,
    Goal,
    MeasureChoice,
    ModelChoice,
    Objective,
    PruneChoice,
    PruneMethod,
    Recipe,
    TargetsChoice,
)
from ace_studio.records.results import (
    Baseline,
    Bound,
    CaptureReport,
    GraphBreak,
    Latency,
    OpReport,
    OpSensitivity,
    Result,
    ResultStatus,
    RunStatus,
    TargetRun,
    Warning,
)
from ace_studio.records.results.finetuning import FinetuneReport
from ace_studio.records.results.pruning import PruningReport
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding

OPS = ("conv2d", "conv2d_1", "linear")


def table(
    ops=("aten.conv2d.default", "aten.conv2d.default", "aten.linear.default"), flops=(60_000_000, 30_000_000, 10)
):
    rows = range(3)
    return GraphTable(
        op_id=OPS, kind=(OpKind.OP,) * 3, op=ops, module=("stem", "body", "head"), shape=("",) * 3, dtype=("",) * 3,
        device=("cpu",) * 3, file=(-1,) * 3, line=(0,) * 3, flops=flops, weight_bytes=(100, 100, 800),
        output_bytes=(0,) * 3, edge_source=tuple(rows)[:2], edge_target=tuple(rows)[1:],
    )  # fmt: skip


def latency(p50=1.0):
    return Latency(p10=p50, p50=p50, p90=p50, n=3)


def op_report(op_id, **values):
    given = {
        "op": "aten.linear.default",
        "module": "",
        "shape": "",
        "device": "cpu",
        "planned": "fp32",
        "actual": "fp32",
    }
    return OpReport(id=op_id, **(given | values))


RUN = TargetRun(
    target="onnxruntime", status=RunStatus.OK, precision="int8-static", latency_ms=latency(), speedup=4.0, sqnr_db=12.0,
    size_bytes=1_000_000, verified=True,
)  # fmt: skip
FLOAT_RUN = replace(RUN, precision="fp32", speedup=1.5, sqnr_db=120.0)
RECIPE = Recipe(model=ModelChoice(source="m.py"))
EVERY = {str(one): "" for one in Precision}
HERE = (
    TargetReport(name="onnxruntime", label="ONNX Runtime", available=True, precisions=EVERY),
    TargetReport(name="openvino", label="OpenVINO", available=True, precisions=EVERY),
)


def facts(run=RUN, *, recipe=RECIPE, targets=(), graph=None, cores=1, library=True, **result):
    found = Result(
        status=ResultStatus.OK,
        fingerprint="f",
        environment={},
        baseline=Baseline(),
        **({"runs": (run,), "chosen": 0} | result),
    )
    return Facts(
        result=found,
        recipe=recipe,
        table=graph or table(),
        targets=targets,
        cores=cores,
        has_pruning_library=library,
    )


def scan(*values):
    return tuple(
        OpSensitivity(id=op_id, precision="int8-static", sqnr_db=db) for op_id, db in zip(OPS, values, strict=True)
    )


def applies(card, given):
    """The recipe that the card makes; raises if the change does not fit."""
    return applied_recipe(given.recipe, given.result, card)


# --- the noise of single ops ---


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


# --- fidelity ---


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
    assert card.can_apply and card.estimated_gain is None and "12.0 dB" in card.why
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
    assert card.change == {"improve": {"methods": ["equalize", "bias-correction"]}}
    assert improve_the_quantization(facts(recipe=applies(card, given))) is None
    matrices = table(ops=("aten.linear.default",) * 3)
    assert "smoothquant" in improve_the_quantization(facts(graph=matrices)).title
    assert improve_the_quantization(facts(replace(RUN, sqnr_db=30.0))) is None


def test_training_is_advised_after_pruning_alone_and_needs_data():
    pruning = PruningReport(method="structured", amount=0.3, sqnr_db=8.0)
    card = train_after_pruning(facts(pruning=pruning))
    assert "8.0 dB" in card.why and card.do_first and not card.can_apply
    with_data = replace(RECIPE, calibration=CalibrationChoice(inputs="data"))
    given = facts(recipe=with_data, pruning=pruning)
    assert train_after_pruning(given).can_apply
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


# --- speed and size ---


def test_a_runtime_that_is_not_installed_comes_with_its_install_line():
    missing = TargetReport(name="openvino", label="OpenVINO", available=False, install="pip install openvino")
    card = use_another_target(facts(FLOAT_RUN, targets=(missing,)))
    assert "pip install openvino" in card.do_first and card.estimated_gain == pytest.approx(1.8 / 1.5, abs=0.01)
    assert use_another_target(facts(replace(FLOAT_RUN, speedup=1.79), targets=(missing,))) is None


def test_a_runtime_that_was_left_out_of_the_recipe_can_be_applied():
    recipe = replace(RECIPE, targets=TargetsChoice(names=("onnxruntime",)))
    given = facts(FLOAT_RUN, recipe=recipe, targets=HERE)
    card = use_another_target(given)
    assert card.kind == "target-openvino" and card.can_apply
    assert applies(card, given).targets.names == ("auto",)
    tried = (FLOAT_RUN, replace(FLOAT_RUN, target="openvino", status=RunStatus.FAILED))
    assert use_another_target(facts(recipe=recipe, targets=HERE, runs=tried)) is None


def test_a_lower_precision_is_advised_where_there_is_accuracy_to_give():
    recipe = replace(RECIPE, goal=Goal(max_drop=0.01))
    with_slack, without = replace(FLOAT_RUN, metric_drop=0.0), replace(FLOAT_RUN, metric_drop=0.009)
    given = facts(with_slack, recipe=recipe, targets=HERE)
    card = lower_the_precision(given)
    assert card.kind == "precision-int8-static" and "1.00% that is allowed only 0.00% is used" in card.why
    assert card.estimated_gain == pytest.approx(5.3 / 1.5, abs=0.01)
    assert applies(card, given).plan == Plan(default=Precision.INT8_STATIC)
    assert lower_the_precision(facts(without, recipe=recipe, targets=HERE)).kind == "precision-bf16"


def test_a_precision_that_no_target_here_can_do_is_not_advised():
    cannot = TargetReport(
        name="openvino", label="OpenVINO", available=True, precisions=dict.fromkeys(EVERY, "no such kernels")
    )
    assert lower_the_precision(facts(FLOAT_RUN, targets=(cannot,))) is None


def test_what_a_search_measured_or_a_target_failed_at_is_not_advised():
    step = replace(FLOAT_RUN, precision="int8-static", status=RunStatus.DROPPED)
    assert lower_the_precision(facts(targets=HERE, runs=(FLOAT_RUN, step))).kind != "precision-int8-static"
    mixed = replace(step, precision="int4-weight + bf16")
    recipe = replace(RECIPE, goal=Goal(optimize=Objective.SIZE))
    assert store_smaller_weights(facts(recipe=recipe, targets=HERE, runs=(RUN, mixed))) is None
    broken = tuple(replace(step, target=one.name, status=RunStatus.FAILED, latency_ms=None) for one in HERE)
    assert lower_the_precision(facts(targets=HERE, runs=(FLOAT_RUN, *broken))).kind != "precision-int8-static"
    (first, _) = broken
    assert "openvino can do int8-static" in lower_the_precision(facts(targets=HERE, runs=(FLOAT_RUN, first))).why


def test_layers_that_wait_for_memory_get_smaller_weights():
    ops = (op_report("linear", share=0.8, bound=Bound.MEMORY, bytes=8_000_000),)
    given = facts(replace(FLOAT_RUN, ops=ops), targets=HERE)
    card = move_fewer_bytes(given)
    assert card.change == {"plan": {"default": "int8-weight"}} and "80% of the time" in card.why
    assert card.estimated_gain == pytest.approx(1 / (1 - 0.8 * 0.75), abs=0.01)
    others = {"bound": Bound.COMPUTE, "bytes": 8_000_000}, {"bound": Bound.MEMORY, "bytes": 20_000}
    for values in others:
        ops = (op_report("linear", share=0.8, **values),)
        assert move_fewer_bytes(facts(replace(FLOAT_RUN, ops=ops), targets=HERE)) is None


def test_the_smallest_weights_are_for_those_who_want_size():
    recipe = replace(RECIPE, goal=Goal(optimize=Objective.SIZE))
    card = store_smaller_weights(facts(recipe=recipe, targets=HERE))
    assert card.quantity is AdviceQuantity.SIZE and "80% of the weights" in card.why
    assert card.estimated_gain == pytest.approx(1 / (1 - 0.8 * (1 - 0.5625)), abs=0.01)
    assert store_smaller_weights(facts(targets=HERE)) is None


def test_pruning_is_advised_for_networks_with_channels_and_says_what_it_needs():
    given = facts()
    card = take_channels_away(given)
    assert applies(card, given).prune.method == "structured" and "ace-studio[prune]" not in card.do_first
    assert "ace-studio[prune]" in take_channels_away(facts(library=False)).do_first
    assert take_channels_away(facts(graph=table(flops=(10, 10, 10)))) is None
    assert take_channels_away(facts(recipe=applies(card, given))) is None


def test_pruning_is_counted_in_bytes_where_bytes_are_what_is_missed():
    assert take_channels_away(facts()).quantity is AdviceQuantity.LATENCY
    large = replace(RUN, size_bytes=5_000_000)
    card = take_channels_away(facts(large, recipe=replace(RECIPE, goal=Goal(max_size_mb=4.0))))
    assert card.quantity is AdviceQuantity.SIZE
    assert card.estimated_gain == pytest.approx(1 / 0.49, abs=0.01)  # 0.7 of the channels on both sides of a weight
    assert "a file 2.0 times smaller" in card.estimate


def test_more_threads_are_advised_where_there_are_cores():
    given = facts(cores=4)
    card = use_more_threads(given)
    assert applies(card, given).measure.threads == "all" and card.estimated_gain == pytest.approx(4**0.7, abs=0.01)
    assert use_more_threads(facts(cores=1)) is None
    assert use_more_threads(facts(cores=4, recipe=replace(RECIPE, measure=MeasureChoice(threads="all")))) is None


def test_more_threads_are_not_advised_for_short_calls_nor_where_speed_is_not_what_is_missing():
    assert use_more_threads(facts(replace(RUN, latency_ms=latency(0.05)), cores=4)) is None
    for goal in (Goal(max_size_mb=0.5), Goal(min_sqnr_db=30.0), Goal(optimize=Objective.SIZE)):
        assert use_more_threads(facts(cores=4, recipe=replace(RECIPE, goal=goal))) is None


def test_the_break_that_costs_most_is_named():
    breaks = tuple(GraphBreak(file="/a/model.py", line=line, reason="why", ops_left_eager=line) for line in (3, 9))
    capture = CaptureReport(rung="partial", ops=90, seconds=1.0, graph_breaks=breaks, ops_left_eager=12)
    card = mend_the_break(facts(capture=capture))
    assert "model.py:9" in card.title and "12 of 102" in card.why and not card.can_apply


def test_an_onnx_file_gets_no_advice_that_it_cannot_follow():
    graph = table(ops=("onnx.Conv", "onnx.Conv", "onnx.Gemm"))
    inductor = TargetReport(name="inductor", label="Inductor", available=True, precisions=EVERY)
    recipe = replace(
        RECIPE, goal=Goal(min_sqnr_db=30.0), calibration=CalibrationChoice(inputs="data"),
        targets=TargetsChoice(names=("onnxruntime",)),
    )  # fmt: skip
    given = facts(recipe=recipe, graph=graph, targets=(inductor,))
    assert given.is_onnx_file and given.is_convolutional
    for rule in (take_channels_away, improve_the_quantization, train_with_rounding, use_another_target):
        assert rule(given) is None
    assert train_with_rounding(facts(recipe=recipe)) is not None


# --- trust ---


@pytest.mark.parametrize(
    ("code", "words"), [("fake-calibration", "made up"), ("calibration-from-tracing", "traced with")]
)
def test_ranges_without_data_are_the_first_card(code, words):
    cards = advise(facts(warnings=(Warning(code=code, what="..."),), sensitivity=scan(5.0, 30.0, 30.0), targets=HERE))
    assert cards[0].kind == "calibration-data" and words in cards[0].why and cards[0].estimated_gain is None
    assert give_calibration_data(facts()) is None


def captured(verdict):
    dims = (DimFinding(index=0, verdict=verdict, size=1), DimFinding(index=1, verdict=DimVerdict.STATIC, size=3))
    inputs = (InputFinding(name="x", dtype="float32", dims=dims),)
    return CaptureReport(rung="export", ops=3, seconds=1.0, inputs=inputs)


def test_a_fixed_batch_can_be_freed():
    given = facts(capture=captured(DimVerdict.STATIC))
    card = free_the_batch(given)
    assert {str(value) for value in applies(card, given).inputs.dims.values()} == {"dynamic"}
    assert free_the_batch(facts(capture=captured(DimVerdict.DYNAMIC))) is None
    assert free_the_batch(facts(recipe=applies(card, given), capture=captured(DimVerdict.STATIC))) is None


# --- the order ---


def test_what_the_goal_misses_comes_first_and_three_are_enough():
    misses = replace(RECIPE, goal=Goal(min_sqnr_db=30.0), targets=TargetsChoice(names=("onnxruntime",)))
    everything = {"sensitivity": scan(5.0, 30.0, 30.0), "targets": HERE, "cores": 16}
    cards = advise(facts(recipe=misses, **everything))
    assert len(cards) == 3 and cards[0].kind == "keep-ops-high"
    fast = replace(RECIPE, targets=TargetsChoice(names=("onnxruntime",)))
    assert advise(facts(replace(RUN, sqnr_db=35.0), recipe=fast, **everything))[0].quantity is AdviceQuantity.LATENCY


def test_a_card_is_not_given_again_to_the_run_that_was_made_from_it():
    recipe = replace(RECIPE, advice_from=AdviceOrigin(kind="keep-ops-high", quantity="fidelity"))
    kinds = {card.kind for card in advise(facts(recipe=recipe, sensitivity=scan(5.0, 30.0, 30.0)))}
    assert kinds and "keep-ops-high" not in kinds


def test_a_run_in_which_nothing_worked_has_no_advice():
    assert advise(facts(chosen=None, runs=())) == ()


def test_the_goal_is_judged_by_the_speed_up_as_everywhere():
    noisy = replace(RUN, latency_ms=replace(latency(), p50=7.2), speedup=1.45)
    goal = Goal(max_latency_ratio=0.7, min_sqnr_db=20.0)
    assert facts(noisy, recipe=replace(RECIPE, goal=goal)).missed == {GoalBound.SQNR}
