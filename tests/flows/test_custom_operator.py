"""A model with an operator of its own: what cannot take it says so at once, the rest is built and verified."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ace_studio.records.errors import ErrorCode
from ace_studio.records.messages import JobFinished, RunRequest
from ace_studio.records.recipes import recipe as recipes
from ace_studio.records.results import Result, RunStatus

MODEL = """
import torch

@torch.library.custom_op("ace_flow::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, x):
        return twice(self.linear(x))

def make_model():
    return Net()

def rows():
    return [torch.ones(2, 4), torch.ones(3, 4)]
"""


@pytest.mark.skipif(importlib.util.find_spec("onnxscript") is None, reason="the ONNX exporter is missing")
def test_the_artifact_is_verified_where_the_operator_is_known_and_other_targets_are_not_built(tmp_path: Path, executor):
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    recipe = recipes.Recipe(
        model=recipes.ModelChoice(source="model.py", entry="make_model"),
        inputs=recipes.InputsChoice(tracing="rows"),
        capture=recipes.CaptureChoice(rungs=("export",), cache=False),
        measure=recipes.MeasureChoice(rounds=1),
        targets=recipes.TargetsChoice(names=("eager", "onnxruntime")),
    )
    request = RunRequest(job="r", recipe=recipe, folder=str(tmp_path), output=str(tmp_path / "out"), trust_all=True)
    result = next(one.result for one in executor.run(request) if isinstance(one, JobFinished))
    assert isinstance(result, Result)
    runs = {run.target: run for run in result.runs}
    assert runs["eager"].verified, runs["eager"].error
    failed = runs["onnxruntime"]
    assert failed.status is RunStatus.FAILED
    assert failed.build_seconds is None, "nothing was built"
    assert failed.error.code is ErrorCode.UNSUPPORTED
    assert failed.error.where.startswith(f"{tmp_path / 'model.py'}:17")
    assert any(warning.code == "custom-op" for warning in result.warnings)
