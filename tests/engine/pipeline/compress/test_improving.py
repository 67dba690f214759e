"""Improvements in a job: built into what is lowered, told in the result, compared with the original."""

from types import SimpleNamespace

import msgspec
import pytest
import torch
from torch import nn

import ace_studio
from ace_studio.engine.improve import Improved
from ace_studio.engine.pipeline.compress.improving import Improvements
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import ImproveMethod, Recipe

pytestmark = pytest.mark.skipif(not TARGETS["onnxruntime"].available().ok, reason="needs ONNX Runtime")


class Block(nn.Module):
    """A norm with an outlier channel in front of two linear layers."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 8)
        with torch.no_grad():
            self.norm.weight[3] = 80.0
            self.up.weight[:, 3] /= 80.0

    def forward(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))


def _batches():
    return [(torch.randn(8, 32, generator=torch.Generator().manual_seed(index)),) for index in range(8)]


def test_a_kept_method_is_built_into_the_artifact_and_told(tmp_path):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Block().eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    found = ace_studio.compile(
        module,
        tracing_inputs=[(torch.randn(n, 32, generator=torch.Generator().manual_seed(n)),) for n in (16, 24)],
        calibration_inputs=_batches(),
        default="int8-static",
        improve=("smoothquant", "gptq"),
        target="onnxruntime",
        rounds=2,
        profile=False,
        out=tmp_path,
    )
    kept, left = found.report.improvements
    assert (kept.method, kept.kept, kept.precision) == ("smoothquant", True, "int8-static")
    assert kept.after_db > kept.before_db + 5.0
    assert not left.kept
    assert "int4-weight" in left.reason
    assert found.report.runs[0].sqnr_db > kept.before_db + 3.0
    assert found.report.runs[0].verified
    assert msgspec.json.decode((tmp_path / "result.json").read_bytes())["improvements"][0]["kept"] is True
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_plans_that_differ_in_what_is_float_share_improvements(monkeypatch):
    asked = []
    captured = SimpleNamespace(improvement_problem="", torch_graph=SimpleNamespace())
    improvements = Improvements(captured, Recipe(), list, Reporter())
    monkeypatch.setattr(improvements, "_improve", lambda _, plan, methods: asked.append(plan) or Improved())
    low, methods = Plan(default=Precision.INT8_STATIC), (ImproveMethod.COMPENSATE,)
    kept_high = msgspec.structs.replace(low, rules=(PlanRule(match="id:a", precision=Precision.BF16),))
    mixed = msgspec.structs.replace(low, rules=(PlanRule(match="id:a", precision=Precision.INT8_DYNAMIC),))
    for plan in (low, kept_high, msgspec.structs.replace(low, rest=Precision.BF16)):
        assert improvements.methods_that_help(plan, methods) == ()
    assert asked == [low]
    improvements.methods_that_help(mixed, methods)
    assert asked == [low, mixed]
