"""Grids, calibration data and improvements in a recipe: read, written back, and refused with the line."""

import pytest

from ace_studio.records.errors import AceError
from ace_studio.records.recipes.file import parse_recipe, recipe_text
from ace_studio.records.recipes.plan import ActivationGrid, Scheme, WeightGranularity
from ace_studio.records.recipes.recipe import ImproveMethod, Observer, Subset

HEAD = 'format = 1\n[model]\nsource = "model.py"\n'
FULL = (
    HEAD
    + """
[calibration]
inputs = "pictures/"
subset = "spread"
observer = "percentile"
percentile = 99.9
mean = [0.5]
std = [0.25, 0.5, 1]
[improve]
methods = ["equalize", "bias-correction"]
[plan]
default = "int8-static"
weights = "per-tensor"
activations = "symmetric"
group_size = 64
[[plan.rules]]
match = "type:Linear"
precision = "int4-weight"
weights = "per-channel"
group_size = 128
"""
)


def test_every_key_is_read_and_comes_back_as_it_was():
    recipe = parse_recipe(FULL, name="recipe.toml")
    assert recipe.calibration.subset is Subset.SPREAD
    assert recipe.calibration.observer is Observer.PERCENTILE
    assert recipe.calibration.std == (0.25, 0.5, 1)
    assert recipe.improve.methods == (ImproveMethod.EQUALIZE, ImproveMethod.BIAS_CORRECTION)
    (rule,) = recipe.plan.rules
    symmetric = ActivationGrid.SYMMETRIC
    assert recipe.plan.scheme == Scheme(weights=WeightGranularity.PER_TENSOR, activations=symmetric, group_size=64)
    assert rule.scheme(recipe.plan) == Scheme(activations=symmetric, group_size=128)
    assert parse_recipe(recipe_text(recipe), name="again.toml") == recipe


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('[plan]\nweights = "per-row"', "a granularity of weights"),
        ('[plan]\nactivations = "afine"', "a kind of grid"),
        ("[plan]\ngroup_size = 33", "a power of two"),
        ('[[plan.rules]]\nmatch = "op:*"\nprecision = "fp32"\ngroup_size = 8', "a power of two"),
        ('[[plan.rules]]\nmatch = "op:*"\nprecision = "fp32"\nweights = "all"', "a granularity of weights"),
        ('[calibration]\nobserver = "max"', "a way to find ranges"),
        ("[calibration]\npercentile = 10", "above 50"),
        ("[calibration]\nstd = [0.0]", "divided by it"),
        ('[calibration]\nsubset = "last"', "a way to choose examples"),
        ('[calibration]\ninputs = "no name"', "neither a function nor data"),
        ('[improve]\nmethods = ["gtpq"]', "a method of improvement"),
        ('[improve]\nmethods = ["gptq", "gptq"]', "twice"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(lines, words):
    with pytest.raises(AceError) as caught:
        parse_recipe(HEAD + lines + "\n", name="recipe.toml")
    (problem,) = caught.value.problems
    assert words in problem.what
    assert problem.where == f"recipe.toml:{len((HEAD + lines).splitlines())}"


@pytest.mark.parametrize("given", ["data.npz", "folder/data.safetensors", "data.pt", "pictures/", "name", "a.py:name"])
def test_functions_files_and_folders_may_give_calibration_data(given):
    assert parse_recipe(f'{HEAD}[calibration]\ninputs = "{given}"\n', name="r").calibration.inputs == given
