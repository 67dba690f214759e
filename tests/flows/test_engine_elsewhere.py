"""A trace and a run over the command line, with the real engine behind a real SSH server."""

from __future__ import annotations

import json
import sys

import pytest

from ace_studio.cli import run_command
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from tests.jobs.hosts.ssh_host import HOST, needs_ssh, ssh_host

MODEL = """
from pathlib import Path
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 4)
        self.body.load_state_dict(torch.load(Path(__file__).with_name("weights.pt"), weights_only=True))
    def forward(self, x):
        return self.body(x).relu()

def make_model():
    return Net()

def tracing_inputs():
    return [(torch.ones(2, 8),), (torch.ones(5, 8),)]
"""
RECIPE = f"""
format = 1
[model]
source = "model.py"
entry = "make_model"
[inputs]
tracing = "tracing_inputs"
[plan]
default = "fp32"
[measure]
rounds = 3
profile = false
[targets]
names = ["eager"]
[engine]
host = "{HOST}"
python = "{sys.executable}"
"""


@pytest.mark.slow
@needs_ssh
def test_a_recipe_runs_on_the_host_that_it_names(tmp_path, monkeypatch, capsys):
    import torch

    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (folder / "recipe.toml").write_text(RECIPE)
    torch.save(torch.nn.Linear(8, 4).state_dict(), folder / "weights.pt")
    with ssh_host(tmp_path / "host") as host:
        monkeypatch.setenv(SSH_VARIABLE, host.command)
        recipe, out = str(folder / "recipe.toml"), folder / "out"
        assert run_command(["trace", recipe, "--json"]) == 5  # nothing is sent without trust
        assert not host.commands
        capsys.readouterr()
        assert run_command(["run", recipe, "--out", str(out), "--trust", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
    assert said["status"] == "ok" and said["folder"] == str(folder)
    assert json.loads((out / "result.json").read_text())["folder"] == str(folder)
    assert (out / "report.html").is_file() and str(host.home) not in (out / "result.json").read_text()
    ran = [run for run in said["runs"] if run["verified"]]
    assert ran and (out / ran[0]["artifact"]).exists()
