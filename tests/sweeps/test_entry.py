"""A sweep with the real engine, from Python."""

from __future__ import annotations

import json

import pytest

import ace_studio
from ace_studio.records.results import decode_result
from ace_studio.records.sweeps import SweepStatus
from ace_studio.sweeps.running import JobAdvanced

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(8, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.b(self.a(x).relu())

def make():
    return Net()
"""
RECIPE = """format = 1
[model]
source = "net.py"
entry = "make"
[[inputs.rows]]
x = { shape = [1, 8], dtype = "float32" }
[measure]
rounds = 3
profile = false
"""


@pytest.mark.slow
def test_a_sweep_of_a_real_model_measures_every_job_and_goes_on_without_measuring_again(tmp_path, monkeypatch):
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "net.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    what = {
        "format": 1,
        "recipes": ["net.toml"],
        "axes": {"target": ["eager", "onnxruntime"], "shape": ["x=1x8", "x=4x8"]},
        "exclude": [{"target": "eager", "shape": "x=4x8"}],
    }
    seen = []
    report = ace_studio.sweep(what, out="out", trust=True, on_event=seen.append)
    assert report.status is SweepStatus.OK
    assert [(row.target, row.axes["shape"]) for row in report.rows] == [
        ("eager", "x=1x8"), ("onnxruntime", "x=1x8"), ("onnxruntime", "x=4x8")
    ]  # fmt: skip
    for row in report.rows:
        result = decode_result((tmp_path / "out" / row.folder / "result.json").read_bytes())
        assert row.latency_ms == result.runs[result.chosen].latency_ms.p50 > 0
        assert row.verified
        assert (tmp_path / "out" / row.artifact).exists()
    assert {event.phase for event in seen if isinstance(event, JobAdvanced)}
    again = ace_studio.sweep(what, out="out", trust=True)
    assert [row.run for row in again.rows] == [row.run for row in report.rows]
    assert json.loads((tmp_path / "out" / "sweep.json").read_bytes())["status"] == "ok"


@pytest.mark.slow
def test_code_that_was_not_trusted_does_not_run(tmp_path, monkeypatch):
    (tmp_path / "net.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "net.toml").write_text(RECIPE)
    report = ace_studio.sweep(tmp_path / "net.toml", out=tmp_path / "out")
    assert [row.error.code for row in report.rows] == ["untrusted"]
    assert not (tmp_path / "ran").exists()
