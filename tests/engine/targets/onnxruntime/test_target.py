"""ONNX Runtime: fusions, what it says it ran, its artifact, its refusals."""

import subprocess
import sys

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

import torch
from torch import nn

from ace_studio.engine.progress import Cancelled
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.onnx.program import onnx_program_of
from ace_studio.engine.targets.onnxruntime.target import providers_for, session_options
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import PlanRule, Precision
from tests.engine.targets.onnx_cases import actual_of, cancelled_at, capture, captured_easy, job_for, sqnr_db
from tests.tiny_models import TinyModel, lstm_cell

torch.set_num_threads(1)
TARGET = TARGETS["onnxruntime"]


def test_static_int8_fuses_every_convolution_and_product_into_an_integer_kernel():
    captured = captured_easy("conv_net")
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC))
    ops = {op.op_id: op for op in lowered.read_back()}
    for op_id in ("conv2d", "conv2d_1", "conv2d_2"):
        assert (ops[op_id].actual, "QLinearConv" in ops[op_id].reason) == ("int8-static", True)
    assert (ops["linear"].actual, "QGemm" in ops["linear"].reason) == ("int8-static", True)
    assert ops["batch_norm"].actual == ops["relu"].actual == "fused"
    assert "conv2d" in ops["batch_norm"].reason


def test_an_8_bit_pool_between_convolutions_is_reported_as_a_kernel_of_its_own():
    pooled = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1))
    generator = torch.Generator().manual_seed(0)
    examples = [(torch.randn(n, 3, 8, 8, generator=generator),) for n in (1, 3)]
    lowered = TARGET.lower(job_for(TARGET, capture(TinyModel(pooled.eval(), examples)), Precision.INT8_STATIC))
    assert actual_of(lowered) == {
        "conv2d": "int8-static",
        "relu": "fused",
        "max_pool2d": "int8-static",
        "conv2d_1": "int8-static",
    }


@pytest.mark.parametrize(
    ("precision", "kernel"),
    [
        (Precision.INT8_DYNAMIC, "DynamicQuantizeMatMul"),
        (Precision.INT8_WEIGHT, "MatMulNBits"),
        (Precision.INT4_WEIGHT, "MatMulNBits"),
    ],
)
def test_other_integer_precisions_run_the_kernel_made_for_them(precision, kernel):
    lowered = TARGET.lower(job_for(TARGET, captured_easy("mlp"), precision))
    linear = next(op for op in lowered.read_back() if op.op_id == "linear")
    assert (linear.actual, kernel in linear.reason) == (precision, True)


def test_a_call_may_name_what_the_example_gave_by_position():
    captured = captured_easy("lstm_cell")
    lowered = TARGET.lower(job_for(TARGET, captured))
    x, state = captured.example.args
    assert torch.equal(lowered(x, state)[1], lowered(state=state, x=x)[1])
    with pytest.raises(AceError) as caught:
        lowered(x)
    assert caught.value.problem.code is ErrorCode.BAD_INPUT


def test_a_state_that_calibration_never_saw_move_is_left_in_float_with_the_reason():
    model = lstm_cell()
    zero = [(x, torch.zeros_like(state)) for x, state in model.examples]
    captured = capture(TinyModel(model.module, zero))
    job = job_for(TARGET, captured, Precision.INT8_STATIC)
    lowered = TARGET.lower(job)
    cell = next(op for op in lowered.read_back() if op.op_id == "lstm_cell")
    assert "throughout calibration" in cell.reason
    assert [warning.code for warning in job.reporter.warnings] == ["calibration-constant"]
    x, state = model.examples[-1]
    assert sqnr_db(model.module(x, state), lowered(x, state)) > 15


class Idle(nn.Module):
    """Five layers of ten read an input that calibration never moves."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(10))

    def forward(self, x, state):
        return sum(layer(state if number % 2 else x) for number, layer in enumerate(self.layers))


def test_many_inputs_that_never_move_are_told_in_one_warning():
    examples = [(torch.randn(count, 16), torch.zeros(count, 16)) for count in (2, 3)]
    job = job_for(TARGET, capture(TinyModel(Idle().eval(), examples)), Precision.INT8_STATIC)
    TARGET.lower(job)
    [warning] = job.reporter.warnings
    assert warning.code == "calibration-constant"
    assert "was 0 throughout calibration" in warning.what
    assert ". So do 4 more ops with such an input (linear_" in warning.what


def test_a_plan_that_nothing_can_follow_is_an_error_and_not_a_silent_fp32():
    captured = capture(TinyModel(nn.ReLU(), [(torch.ones(1, 4),), (torch.ones(2, 4),)]))
    with pytest.raises(AceError) as caught:
        TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC))
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16, Precision.FP8])
def test_floats_that_the_cpu_kernels_lack_are_refused_with_a_reason(precision):
    assert "ONNX Runtime" in TARGET.precision_problem(precision)
    assert TARGET.op_problem("aten.linear.default", precision)


def test_a_dynamic_convolution_is_refused_because_it_would_be_slower():
    assert "slower" in TARGET.op_problem("aten.conv2d.default", Precision.INT8_DYNAMIC)
    assert not TARGET.op_problem("aten.linear.default", Precision.INT8_DYNAMIC)


def test_the_artifact_runs_in_a_process_that_has_never_seen_the_model(tmp_path):
    captured = captured_easy("text_model")
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC))
    path = lowered.save(tmp_path)
    example = captured.unseen[0]
    torch.save([example.tensors(), list(example.call(lowered).values())], tmp_path / "call.pt")
    code = (
        "import sys, torch; from pathlib import Path\n"
        "from ace_studio.engine.targets import TARGETS\n"
        "inputs, expected = torch.load(sys.argv[2], weights_only=True)\n"
        "got = TARGETS['onnxruntime'].load(Path(sys.argv[1]), threads=1)(*inputs)\n"
        "assert len(got) == len(expected) and all(map(torch.allclose, got, expected))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path), str(tmp_path / "call.pt")], check=True, timeout=120)


def test_threads_are_those_asked_for_and_no_thread_spins_between_calls():
    options = session_options(threads=3)
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (3, 1)
    assert options.get_session_config_entry("session.force_spinning_stop") == "1"


def test_a_device_without_a_provider_is_refused():
    with pytest.raises(AceError) as caught:
        providers_for(torch.device("meta"))
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED


def test_calibration_can_be_cancelled():
    captured = captured_easy("conv_net")
    reporter = cancelled_at("finding ranges, example 1")
    with pytest.raises(Cancelled):
        TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC, reporter=reporter))


def test_the_onnx_model_is_exported_once_for_all_targets_of_a_job():
    job = job_for(TARGET, captured_easy("mlp"))
    job.shared.clear()
    assert onnx_program_of(job) is onnx_program_of(job)


class Chain(nn.Module):
    """x [n, 64] -> [n, 32], two products with an activation behind each."""

    def __init__(self, activation, *, tail=None):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 32)
        self.activation, self.tail = activation, tail or nn.Identity()

    def forward(self, x):
        return self.tail(self.activation(self.second(self.activation(self.first(x)))))


def lowered_chain(model, default, **rules):
    generator = torch.Generator().manual_seed(0)
    examples = [(torch.randn(n, 64, generator=generator),) for n in (2, 5)]
    captured = capture(TinyModel(model.eval(), examples))
    planned = tuple(PlanRule(match=f"id:{op}", precision=precision) for op, precision in rules.items())
    lowered = TARGET.lower(job_for(TARGET, captured, default, rules=planned))
    for example in captured.examples:
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > 30
    return actual_of(lowered)


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.ReLU6()])
@pytest.mark.parametrize("tail", [None, nn.Sigmoid()])
def test_an_activation_that_the_quantizer_absorbed_is_not_lost_in_front_of_float(activation, tail):
    actual = lowered_chain(Chain(activation, tail=tail), Precision.INT8_STATIC)
    assert (actual["linear"], actual["linear_1"]) == ("int8-static", "int8-static")


@pytest.mark.parametrize("op", ["linear", "linear_1"])
def test_a_product_planned_fp32_beside_8_bit_ones_is_left_in_float(op):
    actual = lowered_chain(Chain(nn.ReLU()), Precision.INT8_STATIC, **{op: Precision.FP32})
    other = {"linear": "linear_1", "linear_1": "linear"}[op]
    assert (actual[op], actual[other]) == ("fp32", "int8-static")


@pytest.mark.parametrize("default", [Precision.INT8_STATIC, Precision.FP32])
@pytest.mark.parametrize("op", ["linear", "linear_1"])
def test_a_dynamic_product_leaves_the_others_as_planned(default, op):
    actual = lowered_chain(Chain(nn.ReLU()), default, **{op: Precision.INT8_DYNAMIC})
    other = {"linear": "linear_1", "linear_1": "linear"}[op]
    assert (actual[op], actual[other]) == ("int8-dynamic", str(default))
