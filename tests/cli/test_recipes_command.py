"""``recipes``: the list, one of them for a model, and real runs of all."""

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from ace_studio.cli import run_command
from ace_studio.records.messages import FileInspected, FileReport
from ace_studio.records.recipes.families import FAMILIES
from ace_studio.records.recipes.file import parse_recipe, read_recipe, write_recipe
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import MeasureChoice, TargetsChoice
from tests import family_models
from tests.session.fake_engine_link import entry

ENTRIES = tuple(entry(name) for name in ("make_model", "tracing_inputs", "evaluate"))


@pytest.fixture
def inspected(answer_with):
    """An engine that found a model, examples and a metric in ``net.py``."""
    file = {"path": "net.py", "kind": "python", "label": "Python source", "sha256": "ab", "size_bytes": 3}
    answer_with(FileInspected(report=FileReport(**file, trust="code", entries=ENTRIES)))


@pytest.fixture
def net(tmp_path):
    path = tmp_path / "models" / "net.py"
    path.parent.mkdir()
    path.write_text("x = 1\n", encoding="utf-8")
    return path


def test_the_recipes_are_listed(capsys):
    assert run_command(["recipes"]) == 0
    assert "decoder-step" in capsys.readouterr().out
    assert run_command(["recipes", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["recipes"]] == [one.name for one in FAMILIES]


def test_without_a_model_the_recipe_has_usual_names_to_fill_in(capsys):
    assert run_command(["recipes", "detector"]) == 0
    out = capsys.readouterr().out
    assert out == next(one.recipe_text() for one in FAMILIES if one.name == "detector")
    assert parse_recipe(out, name="out").model.source == "model.py"


def test_a_recipe_for_a_model_has_its_names_and_keeps_the_comments(inspected, net, tmp_path, capsys):
    out = tmp_path / "recipe.toml"
    assert run_command(["recipes", "text-encoder", "--model", str(net), "--out", str(out)]) == 0
    recipe = read_recipe(out)
    assert (recipe.model.source, recipe.model.entry) == ("models/net.py", "make_model")
    assert (recipe.inputs.tracing, recipe.evaluate.function) == ("tracing_inputs", "evaluate")
    assert (recipe.plan.default, recipe.goal.max_drop) == (Precision.INT8_DYNAMIC, 0.01)
    assert "# Ranges at every call" in out.read_text(encoding="utf-8")
    assert run_command(["recipes", "unet", "--model", str(net), "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert read_recipe(out) == recipe


def test_a_recipe_for_a_recipe_takes_its_model_and_data(recipe, capsys):
    text = '[calibration]\ninputs = "pictures/"\nmean = [0.5]\n[targets]\nnames = ["eager"]\n[plan]\ndefault = "bf16"\n'
    recipe.write_text(recipe.read_text(encoding="utf-8") + text, encoding="utf-8")
    assert run_command(["recipes", "streaming", "--model", str(recipe)]) == 0
    made = parse_recipe(capsys.readouterr().out, name="out")
    assert (made.calibration.inputs, made.calibration.mean, made.calibration.samples) == ("pictures/", (0.5,), 128)
    assert (made.targets.names, made.plan.default) == (("eager",), Precision.INT8_STATIC)
    assert (made.goal.max_drop, made.goal.min_sqnr_db) == (None, 20.0)  # the recipe has no metric


def test_a_name_that_no_recipe_has_is_refused_with_those_that_exist(capsys):
    assert run_command(["recipes", "toaster"]) == 2
    assert "unet" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_recipe_runs_on_a_small_model_of_its_family(family, tmp_path):
    shutil.copy(Path(family_models.__file__), tmp_path / "net.py")
    path, out = tmp_path / "recipe.toml", tmp_path / "out"
    name = family.name.replace("-", "_")
    words = ["recipes", family.name, "--model", str(tmp_path / "net.py"), "--entry", name, "--out", str(path)]
    assert run_command(words) == 0
    text = path.read_text(encoding="utf-8")
    recipe = parse_recipe(text, name="recipe")
    assert recipe.model.entry == name
    measure = MeasureChoice(rounds=3, profile=False, decode=recipe.measure.decode)
    quick = replace(recipe, targets=TargetsChoice(names=("onnxruntime",)), measure=measure)
    write_recipe(quick, path, text=text)
    assert run_command(["run", str(path), "--out", str(out), "--trust"]) == 0
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["chosen"] is not None
    assert result["runs"][result["chosen"]]["sqnr_db"] > 20
    assert ("decode" in text) == (family.name == "decoder-step")
