"""LiteRT: what is installed is judged honestly, and what the file says of each op is what was planned.

The packages are no part of ``[all]``: without ``pip install 'ace-studio[litert]'`` most of this is skipped.
"""

import pytest
import torch

from ace_studio.engine.plan import bind_plan
from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import ActivationGrid, Plan, PlanRule, Precision, WeightGranularity
from tests.engine.targets.conftest import bound, captured_model, make_job

TARGET = TARGETS["litert"]
needs_litert = pytest.mark.skipif(not TARGET.available().ok, reason=TARGET.available().reason)
POSSIBLE = {"fp32", "int8-static", "int8-dynamic", "int8-weight"}


def test_only_fp32_and_8_bits_are_possible():
    for precision in Precision:
        assert (TARGET.precision_problem(precision) == "") == (precision in POSSIBLE)


@needs_litert
@pytest.mark.slow
def test_each_op_of_a_mixed_plan_computes_as_planned(tmp_path):
    captured = captured_model("conv_net")
    rules = (
        PlanRule(match="module:blocks.0.*", precision=Precision.INT8_DYNAMIC),
        PlanRule(match="module:blocks.1.*", precision=Precision.INT8_WEIGHT),
        PlanRule(match="module:head", precision=Precision.FP32),
    )
    plan = bind_plan(Plan(default=Precision.INT8_STATIC, rules=rules), captured.table, op_problem=TARGET.op_problem)
    lowered = TARGET.lower(make_job(captured, plan, tmp_path))
    actual = {one.op_id: one for one in lowered.read_back()}
    products = [op_id for op_id in actual if op_id.startswith(("conv2d", "linear"))]
    assert [actual[op_id].actual for op_id in products] == ["int8-static", "int8-dynamic", "int8-weight", "fp32"]
    assert "CONV_2D" in actual["conv2d"].reason


@needs_litert
@pytest.mark.slow
def test_two_dynamic_sizes_in_one_reshape_are_refused_with_what_to_do(tmp_path):
    captured = captured_model("text_model")
    with pytest.raises(AceError) as caught:
        TARGET.lower(make_job(captured, bound("litert", captured, Precision.FP32), tmp_path))
    problem = caught.value.problem
    assert problem.code is ErrorCode.UNSUPPORTED
    assert "keeps two dynamic sizes apart" in problem.why and "[inputs.dims]" in problem.remedy


@needs_litert
@pytest.mark.slow
@pytest.mark.parametrize("grid", list(ActivationGrid))
def test_the_file_has_our_scales_and_zero_points(grid, tmp_path):
    from ai_edge_litert.interpreter import Interpreter

    from ace_studio.engine.quantize.observers import ValueRange
    from ace_studio.engine.quantize.pt2e_specs import scale_and_zero_point

    captured = captured_model("mlp")
    asked = Plan(default=Precision.INT8_STATIC, activations=grid, weights=WeightGranularity.PER_TENSOR)
    plan = bind_plan(asked, captured.table, op_problem=TARGET.op_problem)
    path = TARGET.lower(make_job(captured, plan, tmp_path)).save(tmp_path)
    values = torch.cat([one.tensors()[0] for one in captured.examples])
    found = ValueRange(float(values.min()), float(values.max()), 2)
    found = found.symmetric if grid is ActivationGrid.SYMMETRIC else found
    model = Interpreter(str(path))
    model.allocate_tensors()
    quantized = [one for one in model.get_tensor_details() if one["dtype"].__name__ == "int8"]
    grids = [one["quantization"] for one in quantized if len(one["quantization_parameters"]["scales"]) == 1]
    scale, zero_point = scale_and_zero_point(found, grid, is_signed=True)
    assert any(found_scale == pytest.approx(scale, rel=1e-5) and zero == zero_point for found_scale, zero in grids)
