"""``ace-studio fix`` with a real engine: try, save the patch, apply it, and the model is captured whole."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ace_studio.records import containment
from tests.forked_engines import ForkServer

pytestmark = pytest.mark.slow

MODEL = '''import torch
from torch import nn


class Net(nn.Module):
    """Chooses a layer by a value."""

    def __init__(self):
        super().__init__()
        self.left = nn.Linear(4, 4)
        self.right = nn.Linear(4, 4)

    def forward(self, x):
        # which way
        if x.mean() > 0:
            return self.left(x)
        return self.right(x)
'''
RECIPE = """# by hand
format = 1
[model]
source = "net.py"
entry = "Net"
[[inputs.rows]]
x = { shape = [2, 4], dtype = "float32", values = "random" }
[[inputs.rows]]
x = { shape = [5, 4], dtype = "float32", values = "random" }
[capture]
rungs = ["export", "partial"]
[measure]
device = "cpu"
"""


@pytest.fixture
def ace(forked_engines: ForkServer, tmp_path: Path) -> Callable[..., tuple[int, dict]]:
    """Gives a command in the folder of the test; returns its exit code and what it answered."""

    def give(*words: str) -> tuple[int, dict]:
        done = forked_engines.run((*words, "--json"), tmp_path)
        return done.returncode, json.loads(done.stdout)

    return give


def test_a_patch_that_was_green_is_saved_applied_and_then_the_graph_is_whole(tmp_path: Path, ace) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    code, answer = ace("fix", "recipe.toml", "--trust", "--save-patch", "a.patch")
    assert (code, answer["status"], answer["patch"]) == (0, "ok", "a.patch")
    best = answer["fixes"][0]
    assert (best["kind"], best["status"]) == ("where", "green")
    assert (best["before"]["rung"], best["before"]["breaks"], best["after"]["rung"]) == ("partial", 1, "export")
    assert (tmp_path / "net.py").read_text() == MODEL and (tmp_path / "recipe.toml").read_text() == RECIPE
    tools = [tool for tool in (["git", "apply", "-p0"], ["patch", "-p0", "-i"]) if shutil.which(tool[0])]
    assert tools
    for tool in tools:
        (tmp_path / "net.py").write_text(MODEL)
        subprocess.run([*tool, "a.patch"], cwd=tmp_path, check=True, capture_output=True)
        assert "torch.where(is_taken, taken, self.right(x))" in (tmp_path / "net.py").read_text()
    code, answer = ace("trace", "recipe.toml", "--trust")
    assert (code, answer["capture"]["rung"]) == (0, "export")


def test_without_trust_nothing_runs(tmp_path: Path, ace) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    code, answer = ace("fix", "recipe.toml")
    assert (code, answer["error"]["code"]) == (5, "untrusted")


@pytest.mark.skipif(not containment.available()[0], reason=containment.available()[1])
def test_a_fix_is_tried_contained_and_what_the_model_tries_outside_is_refused(tmp_path: Path, ace) -> None:
    stolen = tmp_path / "stolen"
    (tmp_path / "net.py").write_text(f"import pathlib\npathlib.Path({str(stolen)!r}).write_text('x')\n{MODEL}")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    code, answer = ace("fix", "recipe.toml", "--trust")
    assert (code, answer["error"]["code"]) == (3, "user-code"), answer
    assert "runs contained" in answer["error"]["why"] and "--no-contain" in answer["error"]["remedy"]
    assert not stolen.exists()
    (tmp_path / "net.py").write_text(
        f"import pathlib\ntry: pathlib.Path({str(stolen)!r}).touch()\nexcept OSError: pass\n{MODEL}"
    )
    code, answer = ace("fix", "recipe.toml", "--trust")
    assert (code, answer["fixes"][0]["status"]) == (0, "green")
    assert not stolen.exists()
