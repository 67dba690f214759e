"""What reads a maximum is no less exact in OpenVINO than in ONNX Runtime."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import torch
from torch import Tensor, nn

from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.onnx_cases import capture, job_for, sqnr_db
from tests.tiny_models import TinyModel


class Points(nn.Module):
    """Layers over the maximum of all points and their means, as in PointNet, and a gate from norms."""

    def __init__(self) -> None:
        super().__init__()
        self.lift, self.top, self.both, self.gate = (
            nn.Linear(*sizes) for sizes in ((3, 16), (16, 8), (32, 8), (16, 8))
        )

    def forward(self, x: Tensor) -> Tensor:
        points = self.lift(x)
        best, norms = points.amax(1), points.norm(dim=1)
        return self.top(best.relu()) + self.both(torch.cat([best, points.mean(1)], 1)) + self.gate(norms * 0.1)


def test_layers_that_read_maxima_and_norms_stay_float_and_others_do_not():
    torch.manual_seed(0)
    model = TinyModel(Points().eval(), [(torch.randn(1, 20, 3),), (torch.randn(2, 24, 3),)])
    captured = capture(model)
    lowered = TARGETS["openvino"].lower(job_for(TARGETS["openvino"], captured, Precision.INT8_STATIC))
    for example in captured.examples:
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > 35
    ops = {op.op_id: op for op in lowered.read_back()}
    assert [str(ops[name].actual) for name in ("linear", "linear_1", "linear_2", "linear_3")] == [
        "int8-static", "fp32", "fp32", "fp32",
    ]  # fmt: skip
    assert "maximum" in ops["linear_1"].reason
