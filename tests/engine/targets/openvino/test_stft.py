"""Spectra of signals in OpenVINO: at every batch and length, as torch computes them."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import torch
from torch import Tensor, nn

from ace_studio.engine.targets import TARGETS
from tests.engine.targets.onnx_cases import capture, job_for
from tests.tiny_models import TinyModel


class Spectrum(nn.Module):
    """A front end of an audio model: the magnitude of a spectrum, and a linear layer."""

    def __init__(self, *, onesided: bool = True) -> None:
        super().__init__()
        self.onesided = onesided
        self.register_buffer("window", torch.hann_window(32))
        self.mix = nn.Linear(17 if onesided else 32, 5)

    def forward(self, x: Tensor) -> Tensor:
        found = torch.stft(x, 32, 8, window=self.window, return_complex=True, onesided=self.onesided)
        return self.mix((found.abs() + found.angle().cos()).transpose(1, 2))


def signals() -> list[tuple[Tensor]]:
    made = torch.Generator().manual_seed(0)
    return [(torch.randn(batch, length, generator=made),) for batch, length in ((1, 200), (3, 256), (2, 331))]


@pytest.mark.parametrize("onesided", [True, False])
def test_a_spectrum_of_signals_of_any_size_is_computed_as_in_torch(onesided):
    torch.manual_seed(0)
    captured = capture(TinyModel(Spectrum(onesided=onesided).eval(), signals()))
    lowered = TARGETS["openvino"].lower(job_for(TARGETS["openvino"], captured))
    for example in captured.examples:
        torch.testing.assert_close(lowered(*example.args), captured.module(*example.args), rtol=1e-4, atol=1e-4)
