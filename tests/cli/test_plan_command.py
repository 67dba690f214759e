"""``plan``: the precision of every op, and changed values that are saved if asked for."""

import json

import pytest

from ace_studio.cli import run_command
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.messages import JobFinished, ModelCaptured
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.results import CaptureReport
from tests.cli.fake_engine import FakeExecutor

COLUMNS = ("module", "shape", "dtype", "device")
NUMBERS = ("file", "line", "flops", "weight_bytes", "output_bytes")
GRAPH = GraphTable(
    op_id=("x", "conv", "relu"),
    kind=(OpKind.INPUT, OpKind.OP, OpKind.OP),
    op=("input", "aten.conv2d.default", "aten.relu.default"),
    edge_source=(0, 1),
    edge_target=(1, 2),
    **dict.fromkeys(COLUMNS, ("", "", "")),
    **dict.fromkeys(NUMBERS, (0, 0, 0)),
)
CAPTURED = ModelCaptured(fingerprint="f", capture=CaptureReport(rung="export", ops=2, seconds=0.1), graph=GRAPH)


@pytest.fixture
def captured(answer_with):
    answer_with(CAPTURED, JobFinished())


def test_every_op_has_the_precision_that_the_plan_says(captured, recipe, capsys):
    assert run_command(["plan", str(recipe), "--set", "plan.default=int8-static", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(one["id"], one["planned"]) for one in document["ops"]] == [
        ("conv", "int8-static"),
        ("relu", "int8-static"),
    ]
    assert FakeExecutor.requests[0].recipe.plan.default == "int8-static"
    assert 'default = "int8-static"' in document["recipe"]
    assert "int8" not in recipe.read_text()


def test_the_changed_recipe_is_saved_beside_the_other(captured, recipe, capsys):
    saved = recipe.with_name("new.toml")
    words = ["plan", str(recipe), "--set", "plan.default=bf16", "--set", "measure.threads=2", "--save", str(saved)]
    assert run_command(words) == 0
    assert "bf16: 2 of 2 ops" in capsys.readouterr().out
    assert (read_recipe(saved).plan.default, read_recipe(saved).measure.threads) == ("bf16", 2)


def test_it_is_not_saved_where_its_paths_would_mean_something_else(captured, recipe, tmp_path, capsys):
    assert run_command(["plan", str(recipe), "--save", str(tmp_path / "deeper" / "new.toml")]) == 2
    assert "is not in the folder of recipe.toml" in capsys.readouterr().err


def test_what_is_no_key_with_a_value_is_refused(captured, recipe, capsys):
    assert run_command(["plan", str(recipe), "--set", "int8"]) == 2
    assert "'int8' is not KEY=VALUE" in capsys.readouterr().err
