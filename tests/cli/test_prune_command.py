"""``prune --preview``: what is asked of the engine and what is shown."""

import json

import pytest

from ace_studio.cli import run_command
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed, PruningPreviewed
from ace_studio.records.recipes.recipe import PruneMethod
from ace_studio.records.results.pruning import KeptLayer, PrunedLayer, PruningReport
from tests.cli.fake_engine import FakeExecutor

REPORT = PruningReport(
    method="structured",
    amount=0.5,
    layers=(
        PrunedLayer(
            module="stem.0", type="Conv2d", shape_before="8x3x3x3", shape_after="4x3x3x3", weights_before=216,
            weights_after=108, macs_before=55296, macs_after=27648, bytes_before=864, bytes_after=432, sqnr_db=12.5,
        ),
    ),
    kept=(KeptLayer(module="head", reason="its channels are the model's output"),),
    macs_before=55296, macs_after=27648, sqnr_db=11.0, metric_before=0.9, metric_after=0.85, speed="It is faster.",
)  # fmt: skip


@pytest.fixture
def requests(answer_with):
    answer_with(PruningPreviewed(job="prune", report=REPORT))
    return FakeExecutor.requests


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text('format = 1\n[model]\nsource = "net.py"\n[prune]\nmethod = "n:m"\n')
    return str(path)


def test_the_layers_the_sums_and_what_stays_are_shown(recipe, requests, capsys):
    assert run_command(["prune", recipe, "--preview", "--trust"]) == 0
    assert requests[0].trust_all and requests[0].recipe.prune.method is PruneMethod.N_M
    shown = capsys.readouterr().out
    for words in (
        "stem.0",
        "4x3x3x3",
        "108 of 216",
        "55,296 -> 27,648",
        "11.0 dB",
        "0.9000 -> 0.8500",
        "It is faster.",
    ):
        assert words in shown
    assert "kept whole: head (its channels are the model's output)" in shown


def test_options_win_over_the_recipe_and_json_is_one_document(recipe, requests, capsys):
    assert run_command(["prune", recipe, "--preview", "--method", "structured", "--amount", "0.3", "--json"]) == 0
    asked = requests[0].recipe.prune
    assert (asked.method, asked.amount) == (PruneMethod.STRUCTURED, 0.3)
    assert json.loads(capsys.readouterr().out)["pruning"]["layers"][0]["weights_after"] == 108


@pytest.mark.parametrize("words", [[], ["--preview", "--amount", "2"], ["--preview", "--method", "magic"]])
def test_what_makes_no_sense_is_refused_before_anything_runs(recipe, requests, words):
    assert run_command(["prune", recipe, *words]) == 2
    assert not requests


def test_a_problem_of_the_engine_decides_the_exit_code(recipe, answer_with):
    problem = Problem(code=ErrorCode.NOT_INSTALLED, what="Structured pruning needs torch-pruning")
    answer_with(JobFailed(job="prune", problems=(problem,)))
    assert run_command(["prune", recipe, "--preview"]) == 6
