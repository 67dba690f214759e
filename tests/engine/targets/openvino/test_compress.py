"""Scales of activations in OpenVINO that belong to channels, also where positions lie on their axis."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import torch
from torch import Tensor, nn

from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
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
