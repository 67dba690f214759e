"""Why a GPU, or its 8-bit floats, cannot be used, in words."""

import pytest
import torch

from ace_studio.engine.targets.shared import cuda


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_8_bit_floats_are_missing_for_the_same_reason():
    assert "no CUDA device" in cuda.cuda_problem()
    assert cuda.fp8_problem() == cuda.cuda_problem()


def test_a_gpu_before_ada_has_no_8_bit_floats(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "A100")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (8, 0))
    assert cuda.fp8_problem() == "A100 has compute capability 8.0, 8-bit floats need 8.9"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    assert cuda.fp8_problem() == ""
