"""The k-th write, fsync or rename fails, for every k, in every writer: its files are the old ones or the new ones."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ace_studio.engine.capture.cache_store import CaptureStore
from ace_studio.engine.report import write_report
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.file import write_recipe
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.results import RESULT_NAME, Result, ResultStatus, decode_result
from ace_studio.records.safe_file import native_stream
from ace_studio.session.artifacts import copy_artifact
from ace_studio.session.kept.autosave import Autosave, SavedChoices
from ace_studio.session.kept.history import History
from ace_studio.session.kept.settings import Settings
from tests.records.failing_calls import fail_call

CALLS = ("write", "fsync", "replace")


def _result(version: int) -> Result:
    return Result(status=ResultStatus.OK, fingerprint="f" * 64, environment={"v": version})


def _save_recipe(folder: Path, version: int) -> None:
    write_recipe(Recipe(model=ModelChoice(source=f"{version}.py")), folder / "a.toml")


def _save_artifact(folder: Path, version: int) -> None:
    source = folder.parent / f"source{version}"
    source.mkdir(exist_ok=True)
    for name in ("model.xml", "model.bin"):
        (source / name).write_text(f"{name} {version}")
    copy_artifact(source / "model.xml", folder / "out.xml")


def _save_natively(folder: Path, version: int) -> None:
    with native_stream(folder / "model.pt2") as stream:
        for _ in range(3):
            stream.write(b"%d" % version)


def _save_choices(folder: Path, version: int) -> None:
    recipe = Recipe(model=ModelChoice(source=f"{version}.py"))
    saved = SavedChoices(name="m", folder="", recipe_path="", text="", recipe=recipe)
    Autosave(folder)._write(saved)


WRITERS: dict[str, Callable[[Path, int], object]] = {
    "recipe": _save_recipe,
    "settings": lambda folder, version: Settings(folder / "s.json").set("log_lines", 1000 + version),
    "autosave": _save_choices,
    "cache": lambda folder, version: CaptureStore(folder, b"key").write("k", {"graph": b"%d" % version}),
    "artifact": _save_natively,
    "exported artifact": _save_artifact,
}


def _content(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file() and one.suffix != ".bak"}


@pytest.fixture
def fail_at() -> Iterator[Callable[[int], list[int]]]:
    with pytest.MonkeyPatch.context() as patch:

        def arm(failing: int) -> list[int]:
            patch.undo()
            return fail_call(patch, CALLS, failing)

        yield arm


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_whichever_call_fails_the_files_are_the_old_ones_or_the_new_ones(tmp_path, writer, fail_at):
    (tmp_path / "new").mkdir()
    seen = fail_at(0)
    writer(tmp_path / "new", 2)
    new, calls = _content(tmp_path / "new"), seen[0]
    assert calls >= 2
    for failing in range(1, 2 * calls + 2):  # keeping the old generation takes more calls than a first save
        folder = tmp_path / f"at{failing}"
        folder.mkdir()
        fail_at(0)
        writer(folder, 1)
        old = _content(folder)
        fail_at(failing)
        with suppress(OSError, AceError):
            writer(folder, 2)
        assert _content(folder) in (old, new), failing
    assert old != new


def test_the_figures_are_written_whichever_other_file_of_the_report_cannot_be(tmp_path, fail_at):
    figures = 0
    for failing in range(1, 20):
        folder = tmp_path / str(failing)
        folder.mkdir()
        fail_at(0)
        write_report(_result(1), None, folder)
        fail_at(failing)
        with suppress(OSError):
            write_report(_result(2), None, folder)
        found = decode_result((folder / RESULT_NAME).read_bytes()).environment["v"]
        assert found in (1, 2)
        figures += found == 2
    assert figures >= 16


@pytest.mark.parametrize("fault", ["locked", "damaged", "folder"])
def test_a_run_that_ends_while_the_history_cannot_be_used_is_taken_in_later_and_once(tmp_path, fault):
    path = tmp_path / "history.sqlite"
    history = History(path, wait_s=0.01)
    history.add(_result(1), recipe_toml="", title="first")
    good = path.read_bytes()
    with closing(sqlite3.connect(path)) as lock:
        if fault == "locked":
            lock.execute("BEGIN EXCLUSIVE")
        elif fault == "damaged":
            path.write_bytes(b"no database" * 100)
        else:
            path.unlink()
            path.mkdir()
        for _ in range(2):
            with pytest.raises(AceError, match="history"):
                history.add(_result(2), recipe_toml="", title="second")
    if fault == "folder":
        path.rmdir()
    if fault != "locked":
        path.write_bytes(good)
    assert [run.title for run in History(path).list()] == ["second", "first"]
    assert [run.title for run in History(path).list()] == ["second", "first"]
    shutil.rmtree(tmp_path / "history.waiting")


def test_a_temporary_file_of_a_killed_process_is_removed_by_the_next_save(tmp_path):
    dead, own = (tmp_path / f".a.toml.{pid}-x.tmp" for pid in (2**22 + 1, os.getppid()))
    for left in (dead, own):
        left.write_text("half")
    _save_recipe(tmp_path, 1)
    assert (dead.exists(), own.exists()) == (False, True)
