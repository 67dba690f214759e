"""The whole journey on a CUDA device, where there is one: capture, eager, events, fresh process; skipped elsewhere."""

import pytest
import torch
from torch import nn

import ace_studio
from ace_studio.engine import measure
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision

CUDA, CPU = torch.device("cuda:0"), torch.device("cpu")


@pytest.mark.gpu
def test_a_kernel_is_timed_by_events_on_its_stream():
    x = torch.randn(2048, 2048, device=CUDA)
    samples = measure.measure_interleaved(
        {"matmul": lambda: x @ x}, rounds=5, reporter=Reporter(), timer=measure.cuda_event_ms
    )
    flops = 2 * 2048**3
    assert 0 < samples["matmul"].latency().p50 < flops / 1e9  # faster than one teraflop per second, slower than none


@pytest.mark.gpu
def test_a_model_is_captured_measured_and_verified_on_the_gpu(tmp_path):
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    inputs = [torch.randn(2, 8), torch.randn(5, 8)]
    result = ace_studio.compile(
        net, tracing_inputs=inputs, default="fp32", target="eager", device="cuda", rounds=3, out=tmp_path
    )
    chosen = result.report.runs[result.report.chosen]
    assert chosen.verified
    assert {op.device for op in chosen.ops if op.actual == "fp32"} == {"cuda:0"}
    assert result.report.environment["device"] == "cuda:0"


@pytest.mark.gpu
@pytest.mark.parametrize(("precision", "least_db"), [("fp8", 20.0), ("int8-dynamic", 25.0), ("int4-weight", 10.0)])
def test_torchao_computes_linear_layers_at_a_low_precision_and_they_stay_close(tmp_path, precision, least_db):
    target = TARGETS["torchao-cuda"]
    if problem := target.available().reason or target.precision_problem(Precision(precision)):
        pytest.skip(problem)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
    inputs = [torch.randn(16, 256), torch.randn(32, 256)]
    result = ace_studio.compile(
        net, tracing_inputs=inputs, calibration_inputs=inputs, default=precision, target="torchao-cuda", device="cuda",
        rounds=3, out=tmp_path,
    )  # fmt: skip
    (run,) = (one for one in result.report.runs if one.target == "torchao-cuda")
    assert run.verified
    assert run.sqnr_db > least_db
    assert {op.actual for op in run.ops if op.op == "aten.linear.default"} == {precision}


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_inductor_compiles_for_the_gpu_in_floats(tmp_path, precision):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
    inputs = [torch.randn(16, 256), torch.randn(32, 256)]
    result = ace_studio.compile(
        net, tracing_inputs=inputs, default=precision, target="inductor", device="cuda", rounds=3, out=tmp_path
    )
    (run,) = (one for one in result.report.runs if one.target == "inductor")
    assert run.verified
    assert {op.actual for op in run.ops if op.op == "aten.linear.default"} == {precision}


def test_inductor_has_floats_on_a_gpu_and_names_the_target_with_its_integers():
    inductor = TARGETS["inductor"]
    assert not inductor.device_problem(CUDA)
    assert not inductor.precision_problem_on(CUDA, Precision.BF16)
    assert not inductor.precision_problem_on(CPU, Precision.INT8_STATIC)
    assert "torchao-cuda" in inductor.precision_problem_on(CUDA, Precision.INT8_STATIC)
    assert "CPU only" in TARGETS["aoti"].device_problem(CUDA)


ONLY_ON_A_GPU = {"torchao-cuda", "tensorrt"}


def test_a_target_without_the_device_says_so_and_all_but_two_have_the_cpu():
    reasons = {name: target.device_problem(CUDA) for name, target in TARGETS.items()}
    assert not reasons["eager"]
    assert "CPU only" in reasons["openvino"]
    assert {name for name, target in TARGETS.items() if target.device_problem(CPU)} == ONLY_ON_A_GPU
