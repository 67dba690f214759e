"""Scales of activations in OpenVINO that belong to channels, also where positions lie on their axis."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import numpy as np
import torch
from torch import Tensor, nn

from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.openvino import compress
from ace_studio.engine.targets.openvino.library import import_openvino
from ace_studio.records.recipes.plan import PlanRule, Precision
from tests.engine.targets.onnx_cases import capture, job_for, sqnr_db
from tests.tiny_models import TinyModel


class MixedPositions(nn.Module):
    """A linear layer over positions, whose result a depthwise convolution reads as a picture, as in SegFormer."""

    def __init__(self) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)
        self.mix = nn.Conv2d(16, 16, 3, padding=1, groups=16)

    def forward(self, x: Tensor) -> Tensor:
        batch, _, height, width = x.shape
        positions = self.widen(x.flatten(2).transpose(1, 2))
        picture = self.mix(positions.transpose(1, 2).view(batch, 16, height, width))
        return self.narrow(picture.flatten(2).transpose(1, 2).relu())


def test_no_position_has_a_scale_of_its_own():
    torch.manual_seed(0)
    model = TinyModel(MixedPositions().eval(), [(torch.randn(1, 8, 4, 4),), (torch.randn(2, 8, 6, 4),)])
    captured = capture(model)
    lowered = TARGETS["openvino"].lower(job_for(TARGETS["openvino"], captured, Precision.INT8_STATIC))
    for example in captured.examples:
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > 25


class Quiet(nn.Module):
    """Layers whose values are small: of both signs, and none below 0."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.first, self.second, self.last = (
            nn.Conv1d(4, 16, 3, bias=False),
            nn.Conv1d(16, 16, 3, bias=False),
            nn.Linear(16, 8),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.second(self.first(x * self.scale).relu()).transpose(1, 2) / self.scale)


@pytest.mark.parametrize("scale", [1e-4, 1e-9])
def test_values_in_short_ranges_have_all_steps_of_their_grid(scale):
    torch.manual_seed(0)
    captured = capture(TinyModel(Quiet(scale).eval(), [(torch.randn(1, 4, 20),), (torch.randn(2, 4, 30),)]))
    lowered = TARGETS["openvino"].lower(job_for(TARGETS["openvino"], captured, Precision.INT8_STATIC))
    for example in captured.examples:
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > 30


@pytest.mark.parametrize("bits", [7, 8])
def test_weights_have_as_many_bits_as_the_processor_multiplies_without_saturation(monkeypatch, tmp_path, bits):
    monkeypatch.setattr(compress, "int8_weight_bits", lambda: bits)
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv1d(4, 16, 3), nn.ReLU(), nn.Conv1d(16, 16, 3), nn.ReLU(), nn.Conv1d(16, 16, 3))
    captured = capture(TinyModel(module.eval(), [(torch.randn(1, 4, 24),), (torch.randn(2, 4, 32),)]))
    rules = (PlanRule(match="id:conv1d_1", precision=Precision.FP32),)  # what reads a float value is a first layer
    job = job_for(TARGETS["openvino"], captured, Precision.INT8_STATIC, rules=rules)
    path = TARGETS["openvino"].lower(job).save(tmp_path)
    ops = import_openvino().Core().read_model(str(path)).get_ops()
    found = [op.data for op in ops if op.get_type_name() == "Constant" and op.data.dtype == np.int8]
    assert [int(abs(weights.astype(int)).max()) for weights in found] == [2 ** (bits - 1) - 1] * 2
