"""Minus infinity in a mask is no reason to leave the products around it float; in a product it is."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

import torch
from torch import Tensor, nn

from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.onnx_cases import capture, job_for
from tests.tiny_models import TinyModel


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


def test_a_product_of_values_that_are_not_finite_is_refused():
    with pytest.raises(AceError) as caught:
        lowered(float("inf"))
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED
    assert "not finite" in caught.value.problem.what
