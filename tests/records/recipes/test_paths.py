"""A recipe that is saved in another folder still finds its files."""

from pathlib import Path

import pytest

from ace_studio.records.recipes.paths import rebase_recipe
from ace_studio.records.recipes.recipe import CalibrationChoice, EvaluateChoice, InputsChoice, Recipe


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("data.npz", "../old/data.npz"),
        ("photos/", "../old/photos/"),
        ("f.py:inputs", "../old/f.py:inputs"),
        ("inputs", "inputs"),
        ("/data/x.pt", "/data/x.pt"),
        ("", ""),
    ],
)
def test_data_of_every_kind_are_found_from_the_new_folder(given: str, expected: str) -> None:
    recipe = Recipe(
        inputs=InputsChoice(tracing=given),
        calibration=CalibrationChoice(inputs=given),
        evaluate=EvaluateChoice(data=given),
    )
    moved = rebase_recipe(recipe, Path("/work/old"), Path("/work/new"))
    assert (moved.inputs.tracing, moved.calibration.inputs, moved.evaluate.data) == (expected,) * 3
