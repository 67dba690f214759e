"""A sweep with the real engine, from Python."""

import json
import sys

import pytest

import ace_studio
from ace_studio.records.devices import make_device
from ace_studio.records.results import decode_result
from ace_studio.records.sweeps import SweepStatus
from ace_studio.session.kept.devices import DeviceList
from ace_studio.sweeps.running import JobAdvanced
from tests.jobs.hosts.ssh_host import HOST, needs_ssh

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
EVALUATE = """
def evaluate(predict):
    inputs = torch.linspace(-1, 1, 64).reshape(8, 1, 8)
    with torch.no_grad():
        return float(sum(predict(one).square().mean() for one in inputs))
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


@pytest.mark.full  # the page about sweeps is run by test_help_blocks.py; what is done is kept, see test_running.py
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


@pytest.mark.slow
def test_code_that_was_not_trusted_does_not_run_on_a_worker_either(tmp_path, monkeypatch, cluster):
    (tmp_path / "net.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "net.toml").write_text(RECIPE)
    report = ace_studio.sweep(tmp_path / "net.toml", out=tmp_path / "out", scheduler=cluster.address)
    assert [row.error.code for row in report.rows] == ["untrusted"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.full  # one worker does what two do, except how their figures are compared, see test_running.py
@pytest.mark.slow
def test_two_workers_give_the_figures_of_this_machine(tmp_path, monkeypatch, cluster):
    (tmp_path / "net.py").write_text(MODEL + EVALUATE)
    (tmp_path / "net.toml").write_text(RECIPE + '[evaluate]\nfunction = "evaluate"\n')
    monkeypatch.chdir(tmp_path)
    axes = {"target": ["onnxruntime"], "plan": ["fp32", "int8-static"]}
    what = {"format": 1, "recipes": ["net.toml"], "axes": axes}
    here = ace_studio.sweep(what, out="here", trust=True)
    there = ace_studio.sweep(what, out="there", trust=True, scheduler=cluster.address)
    assert here.status is there.status is SweepStatus.OK
    for one, other in zip(here.rows, there.rows, strict=True):
        assert (one.target, one.precision, one.size_bytes) == (other.target, other.precision, other.size_bytes)
        assert other.metric == pytest.approx(one.metric, rel=1e-6)
        assert other.sqnr_db == pytest.approx(one.sqnr_db, abs=0.1)
        assert 1 / 20 < other.latency_ms / one.latency_ms < 20
        assert (tmp_path / "there" / other.artifact).exists()
    assert here.rows[0].metric != here.rows[1].metric


@needs_ssh
@pytest.mark.slow
def test_a_row_of_a_device_is_measured_there_over_ssh(tmp_path, monkeypatch, host):
    DeviceList.of_user().add(make_device("box", HOST, sys.executable))
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "net.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    axes = {"target": ["onnxruntime"], "device": ["cpu", "box"]}
    what = {"format": 1, "recipes": ["net.toml"], "axes": axes}
    report = ace_studio.sweep(what, out="out", trust=True)
    assert report.status is SweepStatus.OK
    here, there = report.rows
    assert there.host.startswith("box: ") and not here.host.startswith("box")
    assert there.latency_ms > 0 and there.baseline_ms is None
    assert there.folder == here.folder or there.run != here.run
