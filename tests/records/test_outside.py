"""Data outside of a recipe's folder is asked for, unless it came with the job."""

from ace_studio.records.outside import outside_files, sent_along
from ace_studio.records.recipes.recipe import ModelChoice, Recipe


def test_what_was_sent_with_a_job_may_be_read_there_and_nothing_beside_it(tmp_path):
    folder = tmp_path / "bundle" / "net"
    recipe = Recipe(model=ModelChoice(source="model.py", weights="../weights/w.pt"))
    (asked,) = outside_files(recipe, folder)
    assert sent_along(recipe, folder, tmp_path / "bundle") == (asked,)
    roundabout = Recipe(model=ModelChoice(source="model.py", weights="../../secret"))
    assert outside_files(roundabout, folder) and sent_along(roundabout, folder, tmp_path / "bundle") == ()
