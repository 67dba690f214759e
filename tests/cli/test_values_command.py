"""``values``: what an op gives, in float and under the plan."""

import json

import numpy as np
import pytest

from ace_studio.cli import run_command
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed, JobFinished, ValuesFound
from ace_studio.records.values import OpValues

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.Linear(8, 4)

    def forward(self, x):
        return self.a(x).relu()

def make():
    return Net()
"""


@pytest.mark.slow
def test_the_values_of_an_op_are_shown_compared_and_saved(tmp_path, capsys):
    (tmp_path / "net.py").write_text(MODEL)
    recipe = 'format = 1\n[model]\nsource = "net.py"\nentry = "make"\n[plan]\ndefault = "int8-weight"\n'
    recipe += '[[inputs.rows]]\nx = { shape = [2, 8], dtype = "float32" }\n'
    (tmp_path / "r.toml").write_text(recipe)
    saved = tmp_path / "tensors.npz"
    words = ["values", str(tmp_path / "r.toml"), "--op", "linear", "--trust", "--save", str(saved)]
    assert run_command(words) == 0
    shown = capsys.readouterr().out
    assert "linear, int8-weight, example 1 of 1" in shown
    assert "a.weight, compressed" in shown
    assert "4x8" in shown
    assert run_command([*words, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    weight = next(one for one in values["tensors"] if one["name"] == "a.weight")
    assert weight["shape"] == [4, 8]
    assert 20 < weight["sqnr_db"] < 80
    with np.load(saved) as tensors:
        assert any(tensors[name].shape == (4, 8) for name in tensors)


def test_an_op_that_is_not_there_is_told(answer_with, recipe, capsys):
    answer_with(JobFailed(problems=(Problem(code=ErrorCode.NOT_FOUND, what="There are no values of x"),)))
    assert run_command(["values", str(recipe), "--op", "x"]) == 2
    assert "There are no values of x" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--target", "openvin"), "no target named 'openvin'"),
        (("--example", "-1"), ""),
        (("--example", "2"), "last one is 1"),
    ],
)
def test_what_is_not_there_is_refused_and_not_replaced(answer_with, recipe, capsys, words, told):
    values = OpValues(op_id="x", precision="fp32", example=1, examples=2, tensors=())
    answer_with(ValuesFound(values=values, fingerprint="f"), JobFinished())
    assert run_command(["values", str(recipe), "--op", "x", *words]) == 2
    assert told in capsys.readouterr().err
