"""The recipe of a command: which model, which inputs, and what the options change."""

import pytest

from ace_studio.cli import follow, run_command
from ace_studio.cli.recipe_options import rows_of
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import (
    JobFailed,
)
from tests.cli.fake_engine import FakeExecutor


@pytest.mark.parametrize("name", ["timm:resnet18", "torchvision:vgg11"])
def test_a_model_of_a_package_is_asked_for_by_its_name(answer_with, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer_with(JobFailed(problems=(Problem(code=ErrorCode.NOT_CAPTURED, what="no"),)))
    run_command(["trace", name, "--input", "x=1x3x8x8"])
    (request,) = FakeExecutor.requests
    assert request.recipe.model.source == name


def test_inputs_on_the_command_line_become_rows():
    rows = rows_of(["x=1x3x8x8", "x=2x3x8x8", "ids=1x16:int64"])
    assert [row["x"].shape for row in rows] == [(1, 3, 8, 8), (2, 3, 8, 8)]
    assert [row["ids"].dtype for row in rows] == ["int64", "int64"]


def test_inputs_on_the_command_line_say_where_their_values_come_from():
    (row,) = rows_of(["ids=1x16:int64:random 0..9", "flag=::value True", "mask=::none"])
    assert [row[name].values for name in ("ids", "flag", "mask")] == ["random 0..9", "value True", "none"]


@pytest.mark.parametrize("word", ["x", "=1x2", "x=1xa", "x=1x-2", "x=1:int64:random 5"])
def test_a_malformed_input_is_a_usage_error(answer_with, recipe, word, capsys):
    assert run_command(["trace", str(recipe), "--input", word]) == 2
    assert "is not an input" in capsys.readouterr().err


@pytest.fixture
def requests(monkeypatch):
    kept = []

    class Executor:
        def run(self, request):
            kept.append(request)
            problem = Problem(code=ErrorCode.NOT_CAPTURED, what="no", why="no", remedy="no")
            yield JobFailed(job=request.job, problems=(problem,))

        def close(self):
            pass

    monkeypatch.setattr(follow, "WorkerExecutor", Executor)
    return kept


@pytest.mark.parametrize("options", [[], ["--compare-rungs"]])
def test_all_rungs_are_compared_only_when_asked_for(tmp_path, requests, options):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('format = 1\n[model]\nsource = "model.py"\nentry = "make"\n', encoding="utf-8")
    assert run_command(["trace", str(recipe), *options]) == 3
    assert requests[0].recipe.capture.compare_rungs is bool(options)


@pytest.mark.parametrize(("options", "batch_only", "cache"), [([], True, True), (["--no-cache"], True, False)])
def test_an_option_says_more_than_the_recipe_and_one_that_is_absent_changes_nothing(
    tmp_path, requests, options, batch_only, cache
):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'format = 1\n[model]\nsource = "model.py"\nentry = "make"\n[capture]\nbatch_only = true\n', encoding="utf-8"
    )
    assert run_command(["trace", str(recipe), *options]) == 3
    assert (requests[0].recipe.capture.batch_only, requests[0].recipe.capture.cache) == (batch_only, cache)


def test_batch_only_can_be_asked_for_on_the_command_line(tmp_path, requests):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('format = 1\n[model]\nsource = "model.py"\n', encoding="utf-8")
    assert run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--batch-only"]) == 3
    assert requests[0].recipe.capture.batch_only
