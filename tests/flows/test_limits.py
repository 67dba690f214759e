"""Jobs that never end or take all memory, on the command line with a real engine."""

import json

import pytest

from ace_studio.cli import run_command

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked_engines")]

MODEL = """
import torch
from torch import nn


class Eats(nn.Module):
    def forward(self, x):
        kept = []
        while True:
            kept.append(torch.ones(2_000_000))


def make():
    return nn.Linear(4, 3)


def rows():
    return [(torch.ones(2, 4),), (torch.ones(3, 4),)]


def endless():
    while True:
        yield (torch.ones(2, 4),)
"""
CALIBRATED = """
[calibration]
inputs = "endless"
samples = 100000000
[plan]
default = "int8-static"
[targets]
names = ["onnxruntime"]
"""


@pytest.mark.parametrize(
    ("source", "entry", "limit", "code", "words", "line"),
    [
        ("net.py", "Eats", "memory_mb = 900", "out-of-memory", "Running the model once", "kept.append"),
        ("hangs.py", "make", "step_s = 3", "timeout", "Loading the model", "while True"),
        ("net.py", "make", "examples = 3000", "bad-input", "more than 3,000 examples", ""),
    ],
)
def test_the_job_is_ended_with_phase_figure_and_line(tmp_path, capsys, source, entry, limit, code, words, line):
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "hangs.py").write_text("\n\nwhile True: pass\n\n\ndef make(): pass\n")
    recipe = tmp_path / "recipe.toml"
    head = f'format = 1\n[model]\nsource = "{source}"\nentry = "{entry}"\n[limits]\n{limit}\n'
    recipe.write_text(head + '[inputs]\ntracing = "net.py:rows"\n' + ("" if line else CALIBRATED))
    assert run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--trust", "--json"]) != 0
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], words in error["what"]) == (code, True), error
    if line:
        file, _, number = error["where"].rpartition(":")
        assert line in (tmp_path / source).read_text().splitlines()[int(number) - 1]
        assert file == str(tmp_path / source)
