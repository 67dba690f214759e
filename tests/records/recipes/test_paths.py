"""A recipe that is saved in another folder still finds its files."""

from pathlib import Path

import pytest

from ace_studio.records.errors import AceError
from ace_studio.records.recipes.paths import rebase_recipe, require_file
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


def test_a_path_with_the_entry_behind_it_is_told_how_to_name_both(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("def make_model(): ...", encoding="utf-8")
    with pytest.raises(AceError, match=r"There is no file net\.py:make_model") as caught:
        require_file(tmp_path / "net.py:make_model")
    assert "--entry make_model" in caught.value.problem.remedy
    with pytest.raises(AceError) as caught:
        require_file(tmp_path / "other.py:make_model")
    assert caught.value.problem.why.endswith("does not exist")
