"""What holds for both targets that read the ONNX model on the CPU: closeness, read-back, results, refusals."""

import pytest
import torch

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")

from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.plan import PlanRule, Precision
from tests.engine.targets.onnx_cases import MODELS, captured_easy, job_for, sqnr_db

LEAST_SQNR_DB = {
    Precision.FP32: 100.0,
    Precision.BF16: 35.0,
    Precision.INT8_STATIC: 30.0,
    Precision.INT8_DYNAMIC: 30.0,
    Precision.INT8_WEIGHT: 30.0,
    Precision.INT4_WEIGHT: 15.0,
}
HERE = [TARGETS[name] for name in ("onnxruntime", "openvino") if TARGETS[name].available().ok]
CASES = [(each, precision) for each in HERE for precision in LEAST_SQNR_DB if not each.precision_problem(precision)]
both_targets = pytest.mark.parametrize("target", HERE, ids=lambda target: target.name)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("target", "precision"), CASES, ids=lambda value: getattr(value, "name", None))
def test_the_result_is_close_at_a_size_that_was_not_traced(name, target, precision):
    captured = captured_easy(name)
    lowered = target.lower(job_for(target, captured, precision))
    for example in captured.examples:
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > LEAST_SQNR_DB[precision]


@both_targets
def test_an_op_planned_otherwise_stays_out_of_the_quantized_part(target):
    rules = (PlanRule(match="id:conv2d_1", precision=Precision.FP32),)
    lowered = target.lower(job_for(target, captured_easy("conv_net"), Precision.INT8_STATIC, rules=rules))
    actual = {op.op_id: op.actual for op in lowered.read_back()}
    assert (actual["conv2d"], actual["conv2d_1"], actual["conv2d_2"]) == ("int8-static", "fp32", "int8-static")


@both_targets
@pytest.mark.parametrize("name", MODELS)
def test_read_back_has_every_op_once_in_order_and_a_reason_where_the_plan_was_not_kept(name, target):
    captured = captured_easy(name)
    job = job_for(target, captured, Precision.INT8_STATIC)
    ops = target.lower(job).read_back()
    assert [op.op_id for op in ops] == [captured.table.op_id[row] for row in captured.table.op_rows()]
    assert all(op.reason for op in ops if op.actual != job.plan.precision_of(op.op_id))
    assert any(op.latency_ms for op in ops)


@both_targets
def test_the_result_is_nested_like_the_models_and_constants_come_back(target):
    captured = captured_easy("many_outputs")
    low, rest, constant = captured.example.call(target.lower(job_for(target, captured)))
    assert (sorted(rest), len(rest["both"]), constant) == (["both", "high"], 2, 3)
    assert low.shape == (3, 4)


@both_targets
def test_a_size_that_the_model_cannot_take_is_an_error_in_our_words(target):
    lowered = target.lower(job_for(target, captured_easy("mlp")))
    with pytest.raises(AceError, match="cannot run the model on these inputs"):
        lowered(torch.zeros(2, 17))


@both_targets
def test_results_stay_as_they_are_when_the_model_is_called_again(target):
    lowered = target.lower(job_for(target, captured_easy("mlp")))
    first = lowered(torch.zeros(2, 16))
    kept = first.clone()
    lowered(torch.ones(2, 16))
    assert torch.equal(first, kept)
