"""The shell line runs the saved recipe."""

import shlex

from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.document import Document
from ace_studio.session.generated_code.python_program import command_line


def test_the_command_runs_the_saved_file_and_asks_to_save_first() -> None:
    recipe = Recipe(model=ModelChoice(source="m.py"))
    saved = Document(recipe=recipe, folder="/my models", recipe_path="/my models/r.toml")
    line = "ace-studio run '/my models/r.toml' --out ace-output --trust"
    assert command_line(saved) == line
    assert shlex.split(line)[2] == "/my models/r.toml"
    unsaved = command_line(Document(recipe=recipe, folder="/m")).splitlines()
    assert unsaved[0].startswith("# Save") and unsaved[1] == "ace-studio run /m/m.ace.toml --out ace-output --trust"
