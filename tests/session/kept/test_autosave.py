"""Unsaved choices, one file per model."""

from __future__ import annotations

from pathlib import Path

import pytest

from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.kept import autosave as module
from ace_studio.session.kept.autosave import Autosave, SavedChoices


def choices(name: str) -> SavedChoices:
    return SavedChoices(name=name, folder="/", recipe_path="", text="", recipe=Recipe(model=ModelChoice(source=name)))


def test_a_damaged_autosave_is_no_obstacle(tmp_path: Path) -> None:
    autosave = Autosave(tmp_path)
    autosave.write(choices("m.py"))
    for path in tmp_path.iterdir():
        path.write_text("{")
    assert autosave.left_behind() == () and autosave.recall("m.py") is None
    autosave.write(choices("m.py"))
    assert autosave.recall("m.py").recipe.model.source == "m.py"


def test_each_model_has_its_own_choices_until_they_are_forgotten(tmp_path: Path) -> None:
    autosave = Autosave(tmp_path)
    autosave.write(choices("/a/m.py"))
    autosave.write(choices("/b/m.py"))
    autosave.forget("/a/m.py")
    assert autosave.recall("/a/m.py") is None and autosave.recall("/b/m.py") is not None


def test_the_models_changed_longest_ago_are_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MODELS_KEPT", 3)
    autosave = Autosave(tmp_path)
    for number in range(5):
        autosave.write(choices(str(number)))
        path = autosave._path(str(number))
        module.os.utime(path, (number, number))
    assert [autosave.recall(str(number)) is not None for number in range(5)] == [False, False, True, True, True]
