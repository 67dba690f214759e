"""What the rules read of a finished run: what it misses, what was tried, what kind of model it is."""

from msgspec.structs import replace

from ace_studio.engine.advice.accuracy_rules import improve_the_quantization, train_with_rounding
from ace_studio.engine.advice.speed_rules import (
    lower_the_precision,
    store_smaller_weights,
    take_channels_away,
    use_another_target,
)
from ace_studio.records.goals import GoalBound
from ace_studio.records.messages import TargetReport
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import CalibrationChoice, Goal, Objective, TargetsChoice
from ace_studio.records.results import RunStatus
from tests.engine.advice.finished_run import EVERY, FLOAT_RUN, HERE, RECIPE, RUN, facts, latency, table


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


def test_a_file_that_is_quantized_already_is_not_to_be_quantized_again():
    targets = (replace(HERE[0], name="onnxruntime"),)
    plain = facts(graph=table(ops=("onnx.Conv", "onnx.Conv", "onnx.Gemm")), targets=targets, runs=(FLOAT_RUN,))
    assert plain.can(Precision.INT8_STATIC)
    for op in ("onnx.QuantizeLinear", "com.microsoft.MatMulNBits"):
        quantized = facts(graph=table(ops=(op, "onnx.Conv", "onnx.Gemm")), targets=targets, runs=(FLOAT_RUN,))
        assert quantized.can(Precision.INT8_STATIC) == []
        assert lower_the_precision(quantized) is None


def test_the_goal_is_judged_by_the_speed_up_as_everywhere():
    noisy = replace(RUN, latency_ms=replace(latency(), p50=7.2), speedup=1.45)
    goal = Goal(max_latency_ratio=0.7, min_sqnr_db=20.0)
    assert facts(noisy, recipe=replace(RECIPE, goal=goal)).missed == {GoalBound.SQNR}
