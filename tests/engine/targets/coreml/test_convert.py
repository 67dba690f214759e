"""Each op of a plan in the converted program: its precision, and the float type of its arithmetic."""

import pytest

from ace_studio.engine.targets.coreml.package import read_spec
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from tests.engine.targets.coreml.conftest import build, needs_coreml, operations


@needs_coreml
@pytest.mark.slow
def test_each_op_of_a_mixed_plan_is_written_as_planned(tmp_path):
    rules = (
        PlanRule(match="module:blocks.0.*", precision=Precision.INT8_WEIGHT),
        PlanRule(match="module:blocks.1.*", precision=Precision.FP16),
        PlanRule(match="module:head", precision=Precision.FP32),
    )
    lowered = build("conv_net", Plan(default=Precision.INT8_STATIC, rules=rules), tmp_path)
    actual = {one.op_id: one for one in lowered.read_back()}
    products = [op_id for op_id in actual if op_id.startswith(("conv2d", "linear"))]
    assert [actual[op_id].actual for op_id in products] == ["int8-static", "int8-weight", "fp16", "fp32"]
    assert actual["conv2d"].reason == "Core ML's program has conv"
    assert {one.device for one in actual.values() if one.actual not in {"folded", "fused"}} == {"unknown"}


@needs_coreml
@pytest.mark.slow
@pytest.mark.parametrize("default", [Precision.INT8_STATIC, Precision.INT8_WEIGHT])
def test_with_a_rest_at_fp16_the_arithmetic_of_8_bit_ops_is_fp16_too(default, tmp_path):
    lowered = build("mlp", Plan(default=default, rest=Precision.FP16), tmp_path)
    assert [one.actual for one in lowered.read_back()] == [default, "fp16", default]
    found = operations(read_spec(lowered.save(tmp_path)))
    half = {one.outputs[0].type.tensorType.dataType for one in found if one.type in ("linear", "relu")}
    assert len(half) == 1 and sum(one.type.startswith("constexpr") for one in found) == 2
