"""Every finished run is kept in SQLite."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from ace_studio.records.errors import AceError
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.kept.history import History
from tests.session.fake_engine_link import result, target_run


def test_a_history_of_an_earlier_version_is_taken_over(tmp_path):
    path = tmp_path / "h.sqlite"
    history = History(path)
    run_id = history.add(result(target_run("eager")), recipe_toml="format = 1", title="m.py")
    with closing(sqlite3.connect(path)) as database, database:
        for column in ("folder", "note", "float_speedup", "name"):
            database.execute(f"ALTER TABLE run DROP COLUMN {column}")
        database.execute("PRAGMA user_version = 1")
    assert history.get(run_id).folder == ""
    second = history.add(result(target_run("eager")), recipe_toml="format = 1", title="m.py", folder="/models")
    assert history.get(second).folder == "/models"


def test_what_knows_only_schema_4_reads_and_writes_a_history_with_names(tmp_path):
    path = tmp_path / "h.sqlite"
    history = History(path)
    run_id = history.add(result(target_run("eager")), recipe_toml="", title="m.py")
    history.set_name(run_id, "the good one")
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute("PRAGMA user_version").fetchone() == (4,)
        # What the version before names asked and added.
        columns = (
            "date, fingerprint, title, status, target, precision, latency_ms, output, tags, recipe_toml, result_json, "
            "folder, speedup, float_speedup, metric, metric_drop, size_bytes"
        )
        assert len(database.execute(f"SELECT id, note, {columns} FROM run").fetchall()) == 1
        database.execute(f"INSERT INTO run ({columns}) SELECT {columns} FROM run")
    assert [(run.name, run.label) for run in history.list()] == [("", "m.py"), ("the good one", "the good one")]
    history.put_back(history.remove([run_id]))
    assert history.get(run_id).summary.name == "the good one"


def test_a_run_comes_back_whole(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    found = result(target_run("openvino"), target_run("eager"))
    text = recipe_text(Recipe(model=ModelChoice(source="m.py")))
    run_id = history.add(found, recipe_toml=text, title="m.py", output="/out", tags=["b", "a", "b"])
    past = history.get(run_id)
    assert past.result == found and past.recipe_toml == text
    assert past.summary == history.list()[0]
    assert (past.summary.target, past.summary.latency_ms, past.summary.tags) == ("openvino", 2.0, ("a", "b"))
    assert past.summary.summary == "ok, openvino bf16, 2.000 ms, 2.00x"


def test_the_gain_over_fp32_in_the_same_runtime_is_kept(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    history.add(result(replace(target_run("openvino"), float_speedup=1.25)), recipe_toml="", title="m.py")
    assert history.list()[0].float_speedup == 1.25
    assert history.list()[0].summary.endswith("2.00x, 1.25x over fp32 there")
    undecided = replace(target_run("openvino"), float_speedup=1.25, speed_undecided="it slowed down")
    history.add(result(undecided), recipe_toml="", title="m.py")
    assert (history.list()[0].speedup, history.list()[0].float_speedup) == (None, None)


def test_the_forecast_is_the_median_of_the_last_runs_of_a_model(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    for seconds in (10.0, 12.0, 50.0):
        one = replace(result(target_run("eager")), seconds=seconds)
        history.remember(one, Recipe(model=ModelChoice(source="m.py")), tmp_path, output=tmp_path)
    assert history.usual_seconds(tmp_path, "m.py") == 12.0
    assert history.usual_seconds(tmp_path, "other.py") is None
    assert history.seconds_of_others(tmp_path, "m.py") == ()
    assert [seconds for seconds, _ in history.seconds_of_others(tmp_path, "other.py")] == [50.0, 12.0, 10.0]
    (tmp_path / "h.sqlite").write_text("this is no database, but it is long enough to be looked at" * 10)
    assert history.usual_seconds(tmp_path, "m.py") is None


def test_the_memory_of_a_model_is_the_most_that_an_artifact_of_its_last_runs_took(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    for peaks in ((None, 300), (None, None), (100, 200)):
        runs = [replace(target_run("eager"), peak_memory_bytes=peak) for peak in peaks]
        one = replace(result(runs[0]), runs=tuple(runs))
        history.remember(one, Recipe(model=ModelChoice(source="m.py")), tmp_path, output=tmp_path)
    assert history.usual_memory(tmp_path, "m.py") == 300
    assert history.usual_memory(tmp_path, "other.py") is None
    (tmp_path / "h.sqlite").write_text("this is no database, but it is long enough to be looked at" * 10)
    assert history.usual_memory(tmp_path, "m.py") is None


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
    with closing(sqlite3.connect(tmp_path / "new.sqlite")) as database, database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(AceError, match="newer"):
        History(tmp_path / "new.sqlite").list()


def _changed(path: Path, *statements: str) -> History:
    history = History(path, wait_s=0.1)
    for title in ("one", "two"):
        history.add(result(target_run("eager")), recipe_toml="format = 1", title=title, tags=["kept"])
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(";".join(statements))
    return history


@pytest.mark.parametrize(
    "change",
    [
        "latency_ms = 'fast'", "tags = 'no json'", "tags = '[[1]]'", "title = x'ff00', date = 7", "speedup = x'00'",
        "size_bytes = 1.5", "note = NULL",
    ],
)  # fmt: skip
def test_a_record_that_somebody_changed_is_called_damaged_and_hides_no_other(tmp_path: Path, change: str) -> None:
    history = _changed(
        tmp_path / "h.sqlite", "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')", "PRAGMA writable_schema = OFF",
    )  # fmt: skip
    with closing(sqlite3.connect(tmp_path / "h.sqlite")) as database, database:
        database.execute(f"UPDATE run SET {change} WHERE title = 'one'")
    found = history.list()
    assert [run.title for run in found] == ["two", "This record is damaged"]
    assert isinstance(found[1].summary, str)
    assert [run.id for run in history.list(tag="kept")][:1] == [found[0].id]


@pytest.mark.parametrize("value", ["7", "x'00'", "'[]'", "'{\"a\":' || hex(zeroblob(9))"])
def test_a_result_that_somebody_changed_is_told(tmp_path: Path, value: str) -> None:
    history = _changed(tmp_path / "h.sqlite", f"UPDATE run SET result_json = {value}")
    with pytest.raises(AceError, match="is damaged"):
        history.get(1)


def test_a_query_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ace_studio.session.kept.history.LONGEST_QUERY_S", 0.2)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT run.* FROM run, n WHERE n.x < 0"
    history = _changed(
        tmp_path / "h.sqlite", "ALTER TABLE run RENAME TO kept",
        f"CREATE VIEW run AS {endless.replace('FROM run', 'FROM kept AS run')}",
    )  # fmt: skip
    with pytest.raises(AceError, match="cannot be used"):
        history.list()


@pytest.mark.parametrize("content", [b"", b"\x80", b"\x91" * 100_000, b"\x81\xa8title) --\xa1x"])
def test_a_waiting_run_that_is_damaged_is_no_obstacle_and_stays(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "h.waiting").mkdir()
    (tmp_path / "h.waiting" / "a.run").write_bytes(content)
    (tmp_path / "h.waiting" / "b.run").mkdir()
    assert History(tmp_path / "h.sqlite").list() == ()
    assert (tmp_path / "h.waiting" / "a.run").read_bytes() == content
