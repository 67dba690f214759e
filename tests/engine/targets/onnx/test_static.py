"""Which nodes become 8-bit: those around a mask of minus infinity, and gates, leaky ReLUs and nearest upsampling behind
convolutions, but no sum that only float nodes read."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

import msgspec
import onnx
import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example
from ace_studio.engine.quantize.observers import UNSEEN
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.onnx.static import with_followers
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import PlanRule, Precision
from tests.engine.targets.onnx_cases import capture, job_for, sqnr_db
from tests.tiny_models import TinyModel, _random


class Masked(nn.Module):
    """Scores with a mask of minus infinity, reshaped behind it; x [n, 8]."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        scores = self.first(x * self.scale).masked_fill(x > 0.5, float("-inf")).reshape(-1, 2, 4)
        return self.second(scores.flatten(1).softmax(-1))


def lowered(scale: float):
    torch.manual_seed(0)
    captured = capture(TinyModel(Masked(scale).eval(), ((torch.randn(2, 8),), (torch.randn(5, 8),))))
    return captured, TARGETS["onnxruntime"].lower(job_for(TARGETS["onnxruntime"], captured, Precision.INT8_STATIC))


def test_products_beside_a_mask_are_8_bit():
    captured, built = lowered(1.0)
    found = {one.op_id: one.actual for one in built.read_back()}
    assert (found["linear"], found["linear_1"]) == (Precision.INT8_STATIC, Precision.INT8_STATIC)
    for example in captured.examples:
        assert torch.isfinite(built(*example.args)).all()


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_a_small_last_convolution_stays_float_and_one_in_front_of_it_does_not(target):
    pytest.importorskip("openvino" if target == "openvino" else "onnxruntime")
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 4, 1), nn.ReLU(), nn.Conv2d(4, 2, 1))
    captured = capture(TinyModel(module.eval(), ((torch.randn(2, 3, 8, 8),), (torch.randn(5, 3, 8, 8),))))
    for last in (Precision.INT8_STATIC, Precision.FP32):
        rules = (PlanRule(match="id:conv2d_2", precision=last),)
        built = TARGETS[target].lower(job_for(TARGETS[target], captured, Precision.INT8_STATIC, rules=rules))
        found = {one.op_id: one.actual for one in built.read_back()}
        assert (found["conv2d_1"], found["conv2d_2"]) == (Precision.INT8_STATIC, Precision.FP32)


def test_where_no_value_was_finite_the_ops_are_named():
    with pytest.raises(AceError) as caught:
        lowered(float("inf"))
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED
    assert caught.value.problem.why == f"linear, linear_1: {UNSEEN}"


class Parts(nn.Module):
    """The first eight steps and the rest, which may be empty, in layers of their own; x [n, t, 6], extra [n, 6]."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest, self.side, self.last = (nn.Linear(6, 16) for _ in range(4))

    def forward(self, x: Tensor, extra: Tensor) -> tuple[Tensor, Tensor]:
        first, rest = self.first(x[:, :8]), self.rest(x[:, 8:]).relu()
        return torch.cat([first, rest], 1), self.last(torch.where(extra.isfinite(), extra, 0.5)) + self.side(extra)


def parts(length: int, *, number: float = 0.0, share: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    made = torch.Generator().manual_seed(seed)
    x, extra = torch.randn(4, length, 6, generator=made), torch.randn(4, 6, generator=made)
    return x, torch.where(torch.rand(4, 6, generator=made) < share, number, extra)


def lowered_parts(target: str, *calibration: tuple[Tensor, Tensor]):
    pytest.importorskip("openvino" if target == "openvino" else "onnxruntime")
    torch.manual_seed(0)
    captured = capture(TinyModel(Parts().eval(), (parts(11), parts(14))))
    job = replace(
        job_for(TARGETS[target], captured, Precision.INT8_STATIC),
        calibration=lambda: [Example.of(one) for one in calibration],
    )
    built = TARGETS[target].lower(job)
    return captured.module, built, {one.op_id: one for one in built.read_back()}


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_an_op_that_calibration_saw_empty_stays_float_and_says_so(target):
    model, built, found = lowered_parts(target, *(parts(8, seed=seed) for seed in range(8)))
    assert (found["linear"].actual, found["linear_1"].actual) == (Precision.INT8_STATIC, Precision.FP32)
    assert UNSEEN in found["linear_1"].reason
    for length in (8, 9, 30):
        given = parts(length, seed=99)
        assert sqnr_db(model(*given)[:1], built(*given)[:1]) > 30


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_ranges_are_those_of_the_finite_elements(target, number):
    calibration = [parts(12, number=number, share=0.2 * (seed % 2), seed=seed) for seed in range(8)]
    model, built, found = lowered_parts(target, *calibration)
    assert found["linear_3"].actual == Precision.INT8_STATIC
    given = parts(12, seed=99)
    assert sqnr_db(model(*given), built(*given)) > 25


def test_an_op_whose_values_were_nowhere_finite_stays_float_and_says_so():
    model, built, found = lowered_parts("onnxruntime", parts(12, number=float("nan"), share=1.0))
    assert UNSEEN in found["linear_3"].reason
    given = parts(12, seed=99)
    assert sqnr_db(model(*given), built(*given)) > 20


class Patches(nn.Module):
    """As vision transformers begin: a convolution, a learned place per patch, and a stream that all blocks add to."""

    def __init__(self):
        super().__init__()
        self.cut, self.place = nn.Conv2d(3, 32, 4, 4), nn.Parameter(torch.linspace(-8, 8, 16 * 32).reshape(1, 16, 32))
        self.norm, self.layer = nn.LayerNorm(32), nn.Linear(32, 32)

    def forward(self, x):
        stream = self.cut(x).flatten(2).transpose(1, 2) + self.place
        return stream + self.layer(self.norm(stream))


def test_a_sum_that_only_float_nodes_read_stays_float():
    captured = capture(TinyModel(Patches().eval(), [(_random(1, 3, 16, 16),), (_random(2, 3, 16, 16, seed=1),)]))
    lowered = TARGETS["onnxruntime"].lower(job_for(TARGETS["onnxruntime"], captured, Precision.INT8_STATIC))
    actual = {one.op_id: one.actual for one in lowered.read_back()}
    assert (actual["conv2d"], actual["linear"]) == ("int8-static", "int8-static")
    assert actual["add"] == "fp32"
    assert sqnr_db(captured.example.call(captured.module), captured.example.call(lowered)) > 40.0


class Gated(nn.Module):
    """A SiLU behind a convolution and one behind a linear layer, each before a product of its own kind."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3)
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        seen = self.two(nn.functional.silu(self.one(x))).mean((2, 3))
        return self.down(nn.functional.silu(self.up(seen.tanh())))


@pytest.mark.parametrize(
    ("target", "expected"), [("onnxruntime", ("int8-static", "fp32")), ("openvino", ("fused", "fused"))]
)
def test_a_gate_is_8_bit_only_behind_a_convolution_and_only_in_onnx_runtime(target, expected):
    if not TARGETS[target].available():
        pytest.skip(f"{target} is not installed")
    captured = capture(TinyModel(Gated().eval(), [(_random(1, 3, 16, 16),), (_random(2, 3, 16, 16, seed=1),)]))
    lowered = TARGETS[target].lower(job_for(TARGETS[target], captured, Precision.INT8_STATIC))
    actual = {one.op_id: one.actual for one in lowered.read_back()}
    assert (actual["conv2d"], actual["conv2d_1"], actual["linear_1"]) == ("int8-static",) * 3
    assert (actual["silu"], actual["silu_1"]) == expected
    assert sqnr_db(captured.example.call(captured.module), captured.example.call(lowered)) > 25.0


class Pyramid(nn.Module):
    """Two scales that are added and concatenated, as in detectors; x [n, 3, 16, 16]."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.stem, self.coarse, self.head = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, 2, 1), nn.Conv2d(32, 64, 1)
        self.mode = mode

    def forward(self, x: Tensor) -> Tensor:
        fine = nn.functional.leaky_relu(self.stem(x), 0.1)
        coarse = nn.functional.interpolate(self.coarse(fine), scale_factor=2.0, mode=self.mode)
        return self.head(torch.cat([nn.functional.leaky_relu(fine + coarse, 0.1), fine], 1)).relu().mean((2, 3))


@pytest.mark.parametrize(("mode", "expected"), [("nearest", "int8-static"), ("bilinear", "fp32")])
def test_ops_behind_nearest_upsampling_are_8_bit_and_behind_interpolation_float(mode, expected):
    captured = capture(TinyModel(Pyramid(mode).eval(), [(_random(1, 3, 16, 16),), (_random(2, 3, 16, 16, seed=1),)]))
    lowered = TARGETS["onnxruntime"].lower(job_for(TARGETS["onnxruntime"], captured, Precision.INT8_STATIC))
    actual = {one.op_id: one.actual for one in lowered.read_back()}
    assert {actual[name] for name in ("conv2d", "conv2d_1", "conv2d_2", "leaky_relu")} == {"int8-static"}
    assert {actual[name] for name in (f"upsample_{mode}2d", "add", "leaky_relu_1", "cat")} == {expected}
    assert sqnr_db(captured.example.call(captured.module), captured.example.call(lowered)) > 25.0


@pytest.mark.parametrize(("mode", "follows"), [("nearest", True), ("linear", False)])
def test_in_a_file_a_resize_is_8_bit_behind_8_bits_unless_it_interpolates(mode, follows):
    graph = onnx.parser.parse_graph(
        "resized (float[1, 4, 8, 8] x, float[4, 4, 1, 1] w, float[4] scales) => (float[1, 4, 16, 16] y) {"
        ' [conv] h = Conv(x, w) [up] u = Resize<mode: string = "' + mode + '">(h, , scales) [last] y = Conv(u, w) }'
    )
    chosen = with_followers(onnx.helper.make_model(graph), {"conv", "up", "last"}, {"conv", "last"}, {"w", "scales"})
    assert ("up" in chosen) is follows


class Positions(nn.Module):
    """Adds rows of a table that are found by shifted positions; x [n, positions, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.linear = nn.Embedding(64, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.linear(x + self.table(positions + 2))


def test_a_sum_of_positions_is_not_said_to_read_floats():
    positions = torch.arange(6).repeat(3, 1)
    captured = capture(TinyModel(Positions().eval(), [(_random(n, 6, 8), positions[:n]) for n in (2, 3)]))
    dtypes = {"add": "int64", "add_1": "float32"}
    table = msgspec.structs.replace(
        captured.table, dtype=tuple(dtypes.get(op_id, "") for op_id in captured.table.op_id)
    )
    job = job_for(TARGETS["onnxruntime"], replace(captured, table=table), Precision.INT8_STATIC)
    reasons = {one.op_id: one.reason for one in TARGETS["onnxruntime"].lower(job).read_back()}
    assert "whole numbers" in reasons["add"]
    assert "what it reads is float" in reasons["add_1"]
