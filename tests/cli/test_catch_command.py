"""``catch``: from a script to a recipe that traces with what the script used."""

import json

import pytest

from ace_studio.cli import run_command
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import InputsCaught
from ace_studio.records.recipes.file import read_recipe
from tests.cli.fake_engine import FakeExecutor

RECIPE = """format = 1  # mine
[model]
source = "model.py"

[inputs]
tracing = "rows"  # goes

[[inputs.rows]]
"""


def caught(folder, **fields) -> InputsCaught:
    return InputsCaught(
        job="catch", path=str(folder / "caught" / "inputs.json"), module="Net", seen=9, kept=2, **fields
    )


def test_words_behind_two_dashes_go_to_the_script(tmp_path, answer_with):
    answer_with(caught(tmp_path))
    words = ["train.py", "--calls", "3", "--module", "encoder", "--out", str(tmp_path), "--", "--steps", "5"]
    assert run_command(["catch", *words]) == 0
    (request,) = FakeExecutor.requests
    assert request.arguments == ("--steps", "5")
    assert (request.calls, request.module, request.trust_all) == (3, "encoder", False)


def test_a_recipe_names_what_was_caught_instead_of_its_function_and_keeps_its_comments(tmp_path, answer_with):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.removesuffix("\n[[inputs.rows]]\n"), encoding="utf-8")
    answer_with(caught(tmp_path))
    assert run_command(["catch", "train.py", "--recipe", str(recipe)]) == 0
    inputs = read_recipe(recipe).inputs
    assert (inputs.caught, inputs.tracing) == ("caught/inputs.json", "")
    assert "# mine" in recipe.read_text(encoding="utf-8")
    assert (tmp_path / "recipe.toml.bak").is_file()


def test_a_script_that_failed_gives_its_exit_code_and_what_was_kept(tmp_path, answer_with, capsys):
    problem = Problem(code=ErrorCode.USER_CODE, what="disk gone", where="train.py:3")
    answer_with(caught(tmp_path, problem=problem))
    assert run_command(["catch", "train.py", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "failed"
    assert document["caught"]["kept"] == 2
    assert document["error"]["where"] == "train.py:3"


@pytest.mark.slow
def test_a_real_script_is_run_only_when_trusted(tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_text("import torch\nnet = torch.nn.Linear(4, 2)\nnet(torch.ones(3, 4))\n", encoding="utf-8")
    out = tmp_path / "seen.safetensors"
    assert run_command(["catch", str(script), "--out", str(out)]) == 5
    assert not out.exists()
    assert run_command(["catch", str(script), "--out", str(out), "--trust", "--json"]) == 0
    document = json.loads(capsys.readouterr().out.split("\n", 0)[0])
    assert document["caught"]["modules"][0]["inputs"] == ["input float32 3x4"]
    assert out.is_file()
    assert (tmp_path / "seen.json").is_file()


@pytest.mark.parametrize("calls", ["0", "many"])
def test_a_number_of_calls_that_makes_no_sense_is_refused(calls):
    assert run_command(["catch", "train.py", "--calls", calls]) == 2
