"""A run that is repeated: its recipe again, and both beside each other."""

import json

import pytest
from msgspec.structs import replace

from ace_studio.cli import run_command
from ace_studio.cli.running import compare
from ace_studio.records.messages import JobFinished
from ace_studio.records.recipes.file import read_recipe, recipe_text
from ace_studio.records.results import CaptureReport, encode_result
from ace_studio.session.kept.history import History
from tests.cli.fake_engine import LATENCY, FakeExecutor, result


@pytest.fixture
def first(recipe, tmp_path):
    """The folder of a run, with the recipe that it was made with."""
    folder = tmp_path / "first"
    folder.mkdir()
    made = replace(
        result(),
        recipe=recipe_text(read_recipe(recipe)),
        folder=str(tmp_path),
        environment={"torch": "2.12.0", "cpu": 2},
    )
    write(made, folder)
    return folder


def write(made, folder):
    """Leave a result in a folder, as a run of this user does."""
    (folder / "result.json").write_bytes(encode_result(made))
    History.open_default().add(made, recipe_toml=made.recipe, title="net.py", output=str(folder), folder=made.folder)


def second(**changes):
    faster = replace(LATENCY, p10=0.5, p50=1.0, p90=1.5)
    run = replace(result().runs[0], latency_ms=faster)
    return replace(result(), runs=(run,), environment={"torch": "2.13.0", "cpu": 2}, **changes)


def test_the_recipe_of_a_folder_runs_again_and_the_figures_stand_beside_each_other(
    answer_with, first, tmp_path, capsys
):
    answer_with(JobFinished(result=second(fingerprint="g")))
    assert run_command(["run", "--repeat", str(first), "--out", str(tmp_path / "out"), "--trust"]) == 0
    (request,) = FakeExecutor.requests
    assert request.recipe.model.entry == "make" and request.folder == str(tmp_path)
    printed = capsys.readouterr().out
    assert "2.000 -> 1.000 (0.50x)" in printed  # the intervals of 1 to 3 and of 0.5 to 1.5 ms overlap
    assert "torch: 2.12.0 -> 2.13.0" in printed and "cpu" not in printed
    assert "not those of the first run" in printed


def test_a_run_of_the_history_is_repeated_by_its_number(answer_with, recipe, tmp_path, capsys):
    answer_with(JobFinished(result=result()))
    assert run_command(["run", str(recipe), "--out", str(tmp_path / "one"), "--trust", "--json"]) == 0
    capsys.readouterr()
    number = str(History.open_default().list()[0].id)
    assert run_command(["run", "--repeat", number, "--out", str(tmp_path / "two"), "--trust", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "ok"
    assert document["repeats"]["of"] == number and document["repeats"]["same_model"] is True
    assert document["repeats"]["rows"][1]["latency"]["change"] == 1.0


@pytest.mark.parametrize(("captured", "is_same"), [("c", True), ("d", False)])
def test_a_run_with_another_plan_is_one_of_the_same_model(captured, is_same):
    first, other = (
        replace(result(), fingerprint=plan, capture=CaptureReport(rung="export", ops=1, seconds=1.0, fingerprint=graph))
        for plan, graph in (("fp32", "c"), ("int8", captured))
    )
    assert compare("1", first, other).same_model is is_same


@pytest.mark.parametrize("words", [[], ["recipe.toml", "--repeat", "1"]])
def test_either_a_recipe_or_a_run_is_named(words, tmp_path, capsys):
    assert run_command(["run", *words, "--out", str(tmp_path / "out")]) == 2
    assert "--repeat RUN" in capsys.readouterr().err


def test_a_run_whose_folder_is_gone_says_so(first, tmp_path, capsys):
    write(replace(result(), recipe="format = 1", folder="/gone", seconds=7.0), first)
    assert run_command(["run", "--repeat", str(first), "--out", str(tmp_path / "out")]) == 2
    assert "its folder /gone is not there" in capsys.readouterr().err


def test_the_folder_of_an_own_run_may_have_been_moved(answer_with, first, tmp_path):
    answer_with(JobFinished(result=second()))
    first.rename(tmp_path / "moved")
    assert run_command(["run", "--repeat", str(tmp_path / "moved"), "--out", str(tmp_path / "out"), "--trust"]) == 0
    assert FakeExecutor.requests[0].folder == str(tmp_path)


def test_what_a_file_says_of_an_own_run_counts_less_than_the_history(answer_with, first, tmp_path):
    answer_with(JobFinished(result=second()))
    text = json.loads((first / "result.json").read_text()) | {"folder": "/elsewhere", "recipe": "format = 1"}
    (first / "result.json").write_text(json.dumps(text))
    assert run_command(["run", "--repeat", str(first), "--out", str(tmp_path / "out"), "--trust"]) == 0
    assert FakeExecutor.requests[0].folder == str(tmp_path) and FakeExecutor.requests[0].recipe.model.entry == "make"
