"""Models whose Python branches on values: rounding changes the result although every subgraph is right."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import ace_studio
from ace_studio.records.results import RunStatus

torch.set_num_threads(1)


class Sorts(nn.Module):
    """Gives rows in the order of scores that are equal but for rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(64, 256)
        self.two = nn.Linear(256, 64)

    def forward(self, x: Tensor) -> Tensor:
        y = self.two(torch.relu(self.one(x)))
        scores = (10 + y.sum(1) - y.flip(1).sum(1)).tolist()
        return y[sorted(range(len(scores)), key=scores.__getitem__)]


@pytest.fixture(autouse=True)
def every_subgraph_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ace_studio.engine.targets.partial.lower.SLOWER", 1e9)


@pytest.mark.slow
def test_subgraphs_that_agree_are_taken_with_a_warning_when_only_decisions_differ(tmp_path: Path) -> None:
    torch.manual_seed(0)
    examples = [(torch.randn(n, 64),) for n in (200, 300)]
    result = ace_studio.compile(
        Sorts(), tracing_inputs=examples, target="onnxruntime", default="fp32", rounds=2, out=tmp_path
    )
    (run,) = result.report.runs
    assert run.status is RunStatus.OK, run.error
    assert run.verified
    assert run.sqnr_db is not None
    assert run.sqnr_db > 60
    assert [one.code for one in result.report.warnings if one.code == "decisions"] == ["decisions"]
