"""A real engine process that loses rungs: one hangs in native code, one ends the process, and the next one wins."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ace_studio.cli import run_command
from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.records.messages import AnyEvent, AttemptEnded, JobFinished, ModelCaptured, TraceRequest
from ace_studio.records.recipes.recipe import CaptureChoice, InputsChoice, ModelChoice, Recipe
from ace_studio.records.tensors import TensorSpec

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
    pytest.mark.usefixtures("forked_engines"),
]

MODEL = r"""
import ctypes, os, signal
import torch
from torch import nn


class Hard(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        if self.how == "hang" and torch.compiler.is_exporting():
            ctypes.PyDLL(None).sleep(600)  # holds the interpreter lock: nothing of Python runs any more
        if self.how == "die" and (torch.compiler.is_exporting() or isinstance(x, torch.fx.Proxy)):
            os.write(1, b"last words\n")
            os._exit(7)
        return self.linear(x).relu()


def hangs(): return Hard("hang")
def dies(): return Hard("die")
"""
ROWS = ({"x": TensorSpec(shape=(2, 3))}, {"x": TensorSpec(shape=(4, 3))})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hard.py").write_text(MODEL, encoding="utf-8")
    return tmp_path


def test_a_trace_that_hangs_in_native_code_is_ended_and_the_next_rung_wins_in_a_new_process(folder: Path) -> None:
    recipe = Recipe(
        model=ModelChoice(source="hard.py", entry="hangs"),
        inputs=InputsChoice(rows=ROWS),
        capture=CaptureChoice(rungs=("export", "fx"), time_limit_s=2.0),
    )
    request = TraceRequest(job="trace", recipe=recipe, folder=str(folder), trust_all=True)
    with WorkerExecutor(WorkerClient(attempt_grace_s=3.0)) as executor:
        events: list[AnyEvent] = list(executor.run(request))
    assert isinstance(events[-1], JobFinished), events[-1]
    (captured,) = (event for event in events if isinstance(event, ModelCaptured))
    assert captured.capture.rung == "fx"
    outcomes = {one.name: one for one in captured.capture.rungs}
    assert [one.status for one in outcomes.values()] == ["timeout", "ok"]
    problem = outcomes["export"].error
    assert problem is not None and "could not be interrupted" in problem.what
    assert problem.where.endswith("hard.py:15")  # the line of the call that never came back
    told = [event.outcome.name for event in events if isinstance(event, AttemptEnded)]
    assert told == ["export", "fx"]


def test_when_every_rung_ends_the_process_the_command_names_the_line_and_ends_with_3(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "recipe.toml").write_text(
        'format = 1\n[model]\nsource = "hard.py"\nentry = "dies"\n[capture]\nrungs = ["export", "fx"]\n'
        "[[inputs.rows]]\nx = { shape = [2, 3] }\n[[inputs.rows]]\nx = { shape = [4, 3] }\n",
        encoding="utf-8",
    )
    assert run_command(["trace", str(folder / "recipe.toml"), "--trust", "--json"]) == 3
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["error"]["code"] == "not-captured"
    (cause,) = document["errors"]  # both methods died of the same line
    assert "os._exit(7)" in cause["what"] and cause["where"].endswith("hard.py:18")
    methods = document["capture"]["rungs"]
    assert [one["status"] for one in methods] == ["crashed", "crashed"]
    assert all(
        f"Capturing with {name}" in one["error"]["what"] for name, one in zip(("export", "fx"), methods, strict=True)
    )
    assert printed.err.count("last words") >= 2
