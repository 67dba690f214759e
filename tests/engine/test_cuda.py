"""The whole journey on a CUDA device, where there is one: capture, eager, events, fresh process; skipped elsewhere."""

import pytest
import torch
from torch import nn

import ace_studio
from ace_studio.engine import measure
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import TARGETS

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


ONLY_ON_A_GPU = {"torchao-cuda", "tensorrt"}


def test_a_target_without_the_device_says_so_and_all_but_two_have_the_cpu():
    reasons = {name: target.device_problem(CUDA) for name, target in TARGETS.items()}
    assert not reasons["eager"]
    assert "CPU only" in reasons["openvino"]
    assert {name for name, target in TARGETS.items() if target.device_problem(CPU)} == ONLY_ON_A_GPU
