"""Every finished run is kept in SQLite."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ace_studio.records.errors import AceError
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.kept.history import History
from tests.session.fake_engine_link import result, target_run


def test_a_history_of_an_earlier_version_is_taken_over(tmp_path):
    path = tmp_path / "h.sqlite"
    history = History(path)
    run_id = history.add(result(target_run("eager")), recipe_toml="format = 1", title="m.py")
    with sqlite3.connect(path) as database:
        for column in ("folder", "note"):
            database.execute(f"ALTER TABLE run DROP COLUMN {column}")
        database.execute("PRAGMA user_version = 1")
    assert history.get(run_id).folder == ""
    second = history.add(result(target_run("eager")), recipe_toml="format = 1", title="m.py", folder="/models")
    assert history.get(second).folder == "/models"


def test_a_run_comes_back_whole(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    found = result(target_run("openvino"), target_run("eager"))
    text = recipe_text(Recipe(model=ModelChoice(source="m.py")))
    run_id = history.add(found, recipe_toml=text, title="m.py", output="/out", tags=["b", "a", "b"])
    past = history.get(run_id)
    assert past.result == found and past.recipe_toml == text
    assert past.summary == history.list()[0]
    assert (past.summary.target, past.summary.latency_ms, past.summary.tags) == ("openvino", 2.0, ("a", "b"))
    assert past.summary.summary == "ok, openvino bf16, 2 ms, 2.00x"


def test_a_run_that_chose_nothing_is_kept_too(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    history.add(result(), recipe_toml="", title="m.py")
    assert history.list()[0].latency_ms is None


def test_the_list_is_newest_first_and_can_be_narrowed(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    first = history.add(result(), recipe_toml="", title="one", tags=["keep"])
    second = history.add(result(), recipe_toml="", title="two")
    assert [run.id for run in history.list()] == [second, first]
    assert [run.id for run in history.list(tag="keep")] == [first]
    assert history.list(fingerprint="other") == ()
    assert len(history.list(limit=1)) == 1
    history.set_tags(second, ["keep"])
    assert len(history.list(tag="keep")) == 2


def test_a_missing_run_a_damaged_file_and_a_newer_one_say_what_is_wrong(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    with pytest.raises(AceError, match="no run 7"):
        history.get(7)
    (tmp_path / "bad.sqlite").write_text("this is no database, but it is long enough to be looked at" * 10)
    with pytest.raises(AceError, match="cannot be used"):
        History(tmp_path / "bad.sqlite").list()
    with sqlite3.connect(tmp_path / "new.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(AceError, match="newer"):
        History(tmp_path / "new.sqlite").list()
