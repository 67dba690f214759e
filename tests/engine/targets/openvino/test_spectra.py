"""Spectra of signals in OpenVINO: at every batch and length, as torch computes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import torch
from torch import Tensor, nn

from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.onnx_cases import actual_of, capture, job_for, sqnr_db
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


class Transformed(nn.Module):
    """x [n, 64] through a transform, between two linear layers."""

    def __init__(self, transform: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.transform = transform
        self.first, self.last = nn.Linear(64, 64), nn.LazyLinear(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.transform(self.first(x)))


FILTER = torch.randn(33, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
TRANSFORMS = {
    "magnitude": lambda x: torch.fft.rfft(x).abs(),
    "filter": lambda x: torch.fft.irfft(torch.fft.rfft(x) * FILTER),
    "mixing": lambda x: torch.fft.fft2(x.view(-1, 8, 8)).real.flatten(1),
    "two axes": lambda x: torch.fft.irfft2(torch.fft.rfft2(x.view(-1, 8, 8), norm="ortho"), norm="ortho").flatten(1),
    "other lengths": lambda x: torch.fft.irfft(torch.fft.rfft(x, n=80) * 2j, n=40),
    "inverse of real": lambda x: torch.fft.ifft(x).abs(),
    "inner axis": lambda x: torch.fft.rfft(x.view(-1, 8, 2, 4), dim=1).abs().flatten(1),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_fourier_transforms_are_those_of_torch(name):
    torch.manual_seed(0)
    model, examples = Transformed(TRANSFORMS[name]), [(torch.randn(batch, 64),) for batch in (2, 3)]
    model(*examples[0])
    captured = capture(TinyModel(model.eval(), examples))
    lowered = TARGETS["openvino"].lower(job_for(TARGETS["openvino"], captured))
    for example in captured.examples:
        torch.testing.assert_close(lowered(*example.args), captured.module(*example.args), rtol=1e-4, atol=1e-4)


def test_layers_around_a_transform_are_quantized():
    torch.manual_seed(0)
    model, examples = Transformed(TRANSFORMS["filter"]), [(torch.randn(batch, 64),) for batch in (8, 16)]
    model(*examples[0])
    captured = capture(TinyModel(model.eval(), examples))
    lowered = TARGETS["openvino"].lower(job_for(TARGETS["openvino"], captured, Precision.INT8_STATIC))
    assert sqnr_db([captured.module(*examples[1])], [lowered(*examples[1])]) > 25
    actual = actual_of(lowered)
    assert (actual["linear"], actual["linear_1"]) == ("int8-static", "int8-static")


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
