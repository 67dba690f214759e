"""Recurrent layers over frames whose number is computed: they are one node, for any length."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


import torch
from torch import Tensor, nn

from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
from tests.engine.captured import captured_of
from tests.engine.targets.onnx_cases import job_for


class Frames(nn.Module):
    """A GRU in both directions over frames of eight samples, four apart; wave [n, t] -> [n, 6]."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 3, batch_first=True, bidirectional=True)

    def forward(self, wave: Tensor) -> Tensor:
        return self.gru(wave.unfold(1, 8, 4))[0].mean(1)


def test_a_recurrent_layer_over_a_computed_number_of_frames_is_one_node():
    torch.manual_seed(0)
    captured = captured_of(Frames().eval(), torch.randn(2, 32), torch.randn(3, 48))
    target = TARGETS["onnxruntime"]
    built = target.lower(job_for(target, captured, Precision.FP32))
    for sizes in ((1, 24), (4, 100)):
        wave = torch.randn(*sizes)
        with torch.no_grad():
            torch.testing.assert_close(built(wave), captured.module(wave), rtol=1e-4, atol=1e-5)
