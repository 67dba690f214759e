"""Unsaved choices, one file per model."""

import os
from pathlib import Path
from threading import Event

import pytest

from ace_studio.records.errors import AceError
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.kept import autosave as module
from ace_studio.session.kept.autosave import Autosave, SavedChoices


def choices(name: str, text: str = "") -> SavedChoices:
    return SavedChoices(name=name, folder="/", recipe_path="", text=text, recipe=Recipe(model=ModelChoice(source=name)))


class SlowDisk:
    """Every write waits for ``moves``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.moves = Event()
        self.writers = 0
        self.most_writers = 0
        self.written: list[bytes] = []
        self._write = module.write_private
        monkeypatch.setattr(module, "write_private", self)

    def __call__(self, path: Path, content: bytes, **options: bool) -> None:
        self.writers += 1
        self.most_writers = max(self.most_writers, self.writers)
        assert self.moves.wait(30)
        self._write(path, content, **options)
        self.written.append(content)
        self.writers -= 1


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    return SlowDisk(monkeypatch)


def test_of_many_changes_on_a_slow_disk_the_newest_is_stored_and_most_are_skipped(
    tmp_path: Path, disk: SlowDisk
) -> None:
    autosave = Autosave(tmp_path)
    for number in range(50):
        autosave.write(choices("a.py", str(number)))
        autosave.write(choices("b.py", str(number)))
    assert not disk.written
    disk.moves.set()
    assert [autosave.recall(name).text for name in ("a.py", "b.py")] == ["49", "49"]
    assert len(disk.written) <= 4 and disk.most_writers == 1


def test_choices_that_are_taken_back_while_they_are_written_do_not_come_back(tmp_path: Path, disk: SlowDisk) -> None:
    autosave = Autosave(tmp_path)
    autosave.write(choices("m.py"))
    autosave.forget("m.py")
    disk.moves.set()
    assert autosave.recall("m.py") is None and not list(tmp_path.iterdir())


def test_that_choices_cannot_be_stored_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    autosave = Autosave(tmp_path / "file")
    autosave.write(choices("m.py"))
    autosave.wait()
    with pytest.raises(AceError, match="Unsaved choices could not be stored"):
        autosave.write(choices("m.py"))
    autosave.wait()
    autosave.write(choices("m.py"))
    assert autosave.recall("m.py") is None


def test_a_damaged_autosave_is_no_obstacle(tmp_path: Path) -> None:
    autosave = Autosave(tmp_path)
    autosave.write(choices("m.py"))
    autosave.wait()
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


def test_a_window_that_takes_its_choices_back_leaves_those_of_another_one_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Autosave(tmp_path), Autosave(tmp_path)
    with monkeypatch.context() as other_process:
        other_process.setattr(module.os, "getpid", os.getppid)
        first.write(choices("m.py"))
        first.wait()
    second.forget("m.py")
    assert second.recall("m.py") is not None
    second.write(choices("m.py"))
    second.wait()
    second.forget("m.py")
    assert second.recall("m.py") is None, "the newest were its own"


def test_the_models_changed_longest_ago_are_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MODELS_KEPT", 3)
    autosave = Autosave(tmp_path)
    for number in range(5):
        autosave.write(choices(str(number)))
        autosave.wait()
        path = autosave._path(str(number))
        module.os.utime(path, (number, number))
    assert [autosave.recall(str(number)) is not None for number in range(5)] == [False, False, True, True, True]
