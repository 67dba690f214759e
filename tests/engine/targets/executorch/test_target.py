"""ExecuTorch: what is installed is judged honestly, sizes have a bound that is told, and the delegate does the work."""

import importlib.metadata

import pytest
import torch

from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.conftest import bound, captured_model, make_job

TARGET = TARGETS["executorch"]
needs_executorch = pytest.mark.skipif(not TARGET.available().ok, reason=TARGET.available().reason)


def test_a_release_for_a_later_torch_is_refused_with_both_versions(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "9.9.9")
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["torchao>=0.18", "torch>=99.1.0a0"])
    problem = TARGET.opening_problem()
    assert "executorch 9.9.9 needs torch 99.1.0 or later" in problem
    assert str(torch.__version__) in problem


def test_only_fp32_and_8_bit_activations_are_possible():
    for precision in Precision:
        assert (TARGET.precision_problem(precision) == "") == (precision in {"fp32", "int8-static", "int8-dynamic"})


@needs_executorch
@pytest.mark.slow
def test_sizes_have_a_bound_that_is_told_and_held(tmp_path):
    captured = captured_model("mlp")
    job = make_job(captured, bound("executorch", captured, Precision.INT8_STATIC), tmp_path)
    lowered = TARGET.lower(job)
    assert any("dim 0: 64;" in one.what for one in job.reporter.warnings)
    assert lowered(torch.zeros(64, 16)).shape == (64, 4)
    with pytest.raises(AceError) as caught:
        lowered(torch.zeros(65, 16))
    assert caught.value.problem.code is ErrorCode.BAD_INPUT
    actual = {one.op_id: one for one in lowered.read_back()}
    assert "XNNPACK (block 0)" in actual["linear"].reason
    assert actual["linear"].actual == "int8-static"
    assert actual["relu"].actual == "fused"
    assert "kernel of linear (int8-static)" in actual["relu"].reason
