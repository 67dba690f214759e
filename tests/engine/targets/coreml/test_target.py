"""Core ML: what is written is what was planned, and on a machine that is no Mac nothing is claimed beyond that.

The package is no part of ``[all]``: without ``pip install 'ace-studio[coreml]'`` most of this is skipped.
"""

import sys

import pytest
import torch
from torch import nn

import ace_studio
from ace_studio.engine.targets import select_targets
from ace_studio.engine.targets.base import Availability
from ace_studio.engine.targets.coreml import target as coreml
from ace_studio.engine.targets.coreml.package import Port, Ports
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import RunStatus
from tests.engine.targets.coreml.conftest import TARGET, needs_coreml

no_mac = pytest.mark.skipif(sys.platform == "darwin", reason="Core ML runs here")
POSSIBLE = {"fp32", "fp16", "int8-static", "int8-weight"}


def test_only_what_core_ml_has_is_possible(monkeypatch):
    for precision in Precision:
        assert (TARGET.precision_problem(precision) == "") == (precision in POSSIBLE)
    monkeypatch.setattr(coreml, "is_torchao_installed", lambda: False)
    assert "torchao" in TARGET.precision_problem(Precision.INT8_STATIC)


def test_it_runs_on_macos_only_and_auto_takes_it_only_there(monkeypatch):
    monkeypatch.setattr(coreml.CoreMlTarget, "available", lambda _: Availability(ok=True))
    monkeypatch.setattr(sys, "platform", "linux")
    assert "only on macOS" in TARGET.run_problem() and TARGET not in select_targets(["auto"])
    assert TARGET in select_targets(["coreml"])
    monkeypatch.setattr(sys, "platform", "darwin")
    assert TARGET.run_problem() == "" and TARGET in select_targets(["auto"])


class FakeModel:
    """Stands for coremltools' model on a Mac, where it can predict."""

    def __init__(self, path):
        self.path, self.given = path, {}

    def predict(self, given):
        self.given = given
        if given["ids"].size > 2:
            raise RuntimeError("MultiArray shape (3) does not match")
        return {"y": torch.tensor([1.0]).numpy(), "z": torch.ones(2, dtype=torch.int32).numpy()}


def test_tensors_are_handed_to_core_ml_and_come_back_as_the_original_has_them(monkeypatch, tmp_path):
    opened = []
    library = type(sys)("coremltools")
    library.models = type(sys)("coremltools.models")
    library.models.MLModel = lambda path: opened.append(FakeModel(path)) or opened[0]
    monkeypatch.setitem(sys.modules, "coremltools", library)
    ports = Ports(
        takes=(Port(name="x", dtype="float32", sizes=((1, 1),)), Port(name="ids", dtype="int64", sizes=((1, 2),))),
        gives=(Port(name="z", dtype="int64", sizes=(None,)), Port(name="y", dtype="bool", sizes=())),
    )
    run = coreml.opened_package(tmp_path / "model.mlpackage", ports)
    first, second = run(torch.ones(1), torch.tensor([1, 2]))
    assert {name: str(array.dtype) for name, array in opened[0].given.items()} == {"x": "float32", "ids": "int32"}
    assert first.dtype is torch.int64 and first.tolist() == [1, 1]
    assert second.dtype is torch.bool and second.shape == ()
    with pytest.raises(AceError) as caught:
        run(torch.ones(1), torch.tensor([1, 2, 3]))
    assert caught.value.problem.code is ErrorCode.BAD_INPUT


@needs_coreml
@no_mac
@pytest.mark.slow
def test_a_job_saves_it_with_the_reason_why_it_was_not_run(tmp_path):
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
    result = ace_studio.compile(
        module, tracing_inputs=[torch.randn(2, 16)], target=["eager", "coreml"], default="int8-weight", rounds=3,
        profile=False, out=tmp_path,
    )  # fmt: skip
    (run,) = [one for one in result.report.runs if one.target == "coreml"]
    assert run.status is RunStatus.OK and run.not_run == TARGET.run_problem()
    assert not run.verified and run.latency_ms is None and run.size_bytes
    assert (tmp_path / run.artifact / "Manifest.json").is_file()
    assert [op.actual for op in run.ops] == ["int8-weight", "fp32", "int8-weight"]
