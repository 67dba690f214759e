"""A model without a whole graph, from the recipe to the verified folder, with the real engine process."""

import json
import textwrap
from pathlib import Path

import pytest

from tests.forked_engines import ForkServer

MODEL = """
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(16, 4)

    def forward(self, image):
        x = self.stem(image)
        if x.mean() > 0:
            x = self.body(x)
        return self.head(x.mean((2, 3)))


def make_model():
    return Gated()


def tracing_inputs():
    return [(torch.randn(2, 3, 32, 24),), (torch.randn(3, 3, 40, 56),)]
"""
RECIPE = """
format = 1
[model]
source = "model.py"
entry = "make_model"
[inputs]
tracing = "tracing_inputs"
[capture]
rungs = ["export", "partial"]
[plan]
default = "int8-static"
[measure]
rounds = 3
[targets]
names = ["onnxruntime"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(textwrap.dedent(MODEL), encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_a_run_compiles_the_subgraphs_and_proves_the_folder_in_a_fresh_process(
    folder: Path, forked_engines: ForkServer
) -> None:
    done = forked_engines.run(("run", "recipe.toml", "--out", "out", "--trust", "--json"), folder)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    capture = result["capture"]
    assert capture["rung"] == "partial"
    assert [(one["name"], one["status"]) for one in capture["rungs"]] == [("export", "failed"), ("partial", "ok")]
    assert [subgraph["error"] for subgraph in capture["pieces"]] == [None, None]
    (found,) = capture["graph_breaks"]
    assert set(found) >= {"file", "line", "reason", "code", "count", "ops_left_eager", "hint"}
    assert Path(found["file"]).name == "model.py"
    assert found["code"] == "if x.mean() > 0:"
    (run,) = result["runs"]
    assert run["status"] == "ok", run["error"]
    assert run["verified"]
    assert {op["id"].partition(".")[0] for op in run["ops"]} == {"p0", "p1"}
    artifact = folder / "out" / run["artifact"]
    assert {"pieces.json", "run_pieces.py"} <= {one.name for one in artifact.iterdir()}
    assert "if x.mean() &gt; 0:" in (folder / "out" / "report.html").read_text(encoding="utf-8")
