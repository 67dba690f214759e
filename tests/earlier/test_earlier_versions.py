"""Files that earlier versions wrote are opened by this one.

``first`` is from the week in which the history began (its schema 1), ``0.1`` and ``0.2.0`` from those versions (schema
2). Each folder holds what that version really wrote: a recipe, a result, a history, settings, trusted files and an
autosave.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from ace_studio.cli import run_command
from ace_studio.records.recipes.file import read_recipe, write_recipe
from ace_studio.session.kept.autosave import Autosave
from ace_studio.session.kept.history import History
from ace_studio.session.kept.settings import Settings
from ace_studio.session.kept.trust import TrustStore


@pytest.fixture(params=["first", "0.1", "0.2.0"])
def earlier(request, tmp_path) -> Path:
    """A copy of the files of a version."""
    return Path(shutil.copytree(Path(__file__).parent / request.param, tmp_path / "earlier"))


def test_the_recipe_keeps_its_meaning_and_its_comments_when_it_is_saved(earlier):
    path = earlier / "tiny.toml"
    recipe = read_recipe(path)
    assert (recipe.plan.default, recipe.plan.rules[0].match) == ("int8-dynamic", "module:last")
    write_recipe(recipe, path, text=path.read_text())
    assert read_recipe(path) == recipe
    assert "Kept by a test" in path.read_text()


def test_the_history_is_taken_over_with_every_figure_and_takes_new_runs(earlier):
    history = History(earlier / "history.sqlite")
    (line,) = history.list()
    past = history.get(line.id)
    assert (line.status, line.target, line.precision) == ("ok", "onnxruntime", "int8-dynamic")
    assert past.result.runs[past.result.chosen].latency_ms.p50 == line.latency_ms > 0
    history.set_note(line.id, "kept")
    again = history.add(past.result, recipe_toml=past.recipe_toml, title=line.title, folder="/home/ada")
    assert [run.id for run in history.list()] == [again, line.id]


def test_settings_and_trust_are_as_they_were_left(earlier):
    settings = Settings(earlier / "settings.json")
    assert [settings.get(key) for key in ("theme", "scale_percent", "cancel_grace_s")] == ["light", 150, 2.0]
    assert settings.recent_files == ("/home/ada/tiny.toml",)
    assert TrustStore(earlier / "trusted.json").is_trusted(
        hashlib.sha256((earlier / "tiny.py").read_bytes()).hexdigest()
    )


def test_choices_that_were_not_saved_are_offered_once_in_today_s_form(earlier):
    folder = earlier / "autosave"
    folder.mkdir()
    shutil.move(earlier / "autosave.json", folder)
    (left,) = Autosave(folder).left_behind()
    assert (left.name, left.recipe.plan.default) == ("/home/ada/tiny.toml", "int8-dynamic")
    assert Autosave(folder).recall(left.name) == left and len(list(folder.iterdir())) == 1
    Autosave(folder).decline()
    assert Autosave(folder).left_behind() == ()


def test_the_result_is_shown_again(earlier, capsys):
    assert run_command(["report", str(earlier)]) == 0
    assert "onnxruntime" in capsys.readouterr().out
    assert run_command(["report", str(earlier), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][1]["target"] == "onnxruntime"
    assert run_command(["advise", str(earlier)]) == 0


@pytest.mark.heavy
def test_a_run_that_kept_its_recipe_is_repeated_and_compared(earlier, tmp_path, capsys):
    result = json.loads((earlier / "result.json").read_text())
    (earlier / "result.json").write_text(json.dumps(result | {"folder": str(earlier)}))
    command = ["run", "--repeat", str(earlier), "--out", str(tmp_path / "out"), "--trust"]
    if result.get("recipe"):
        assert run_command(command) == 0
        assert "onnxruntime" in capsys.readouterr().out
    else:
        assert run_command(command) == 2
        assert "an older ACE Studio wrote the result" in capsys.readouterr().err
