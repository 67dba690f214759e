"""The history panel: past runs on this machine with their choices and results, to open again."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QDesktopServices

from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from tests.session.fake_engine_link import result, target_run

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def past(desk, tmp_path):
    """A window whose user has made three runs; only the newest still has its folder."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "report.html").write_text("<html></html>", encoding="utf-8")
    (tmp_path / "m.py").write_text("def make_model(): ...", encoding="utf-8")
    text = recipe_text(Recipe(model=ModelChoice(source="m.py", entry="make_model")))
    for day, (title, output) in enumerate((("old.py", "/gone"), ("other.py", "/gone"), ("m.py", str(folder))), start=1):
        desk.session.history.store.add(
            result(target_run("openvino" if day == 3 else "eager")), recipe_toml=text, title=title, output=output,
            folder=str(tmp_path), date=datetime(2026, 11, day, 12, 0, tzinfo=UTC),
        )  # fmt: skip
    desk.open_example()
    desk.panel("history")
    desk.settle()
    return desk


def click(desk, panel, row, keys=Qt.KeyboardModifier.NoModifier):
    place = panel.table.visualRect(panel.model.index(row, 1)).center()
    desk.bot.mouseClick(panel.table.viewport(), LEFT, keys, place)
    desk.settle()


def test_runs_are_listed_newest_first_with_what_was_chosen(past):
    panel = past.panel("history")
    shown = [panel.model.index(row, 1).data() for row in range(panel.model.rowCount())]
    assert shown == ["m.py", "other.py", "old.py"]
    assert panel.model.index(0, 3).data() == "openvino bf16"
    assert panel.model.index(0, 5).data() == "2.00×"
    assert panel._count.text() == "3 runs"


def test_the_filter_keeps_runs_that_hold_every_word(past):
    panel = past.panel("history")
    past.bot.keyClicks(panel.filter, "eager old")
    past.bot.wait(120)
    assert [panel.model.index(row, 1).data() for row in range(panel.model.rowCount())] == ["old.py"]
    assert panel._count.text() == "1 of 3 runs"


def test_a_run_is_tagged_in_the_panel_and_found_by_its_tag(past):
    panel = past.panel("history")
    assert not panel.tags.isEnabled()
    click(past, panel, 1)
    past.bot.keyClicks(panel.tags, "release, int8 ,")
    past.bot.keyClick(panel.tags, Qt.Key.Key_Return)
    past.settle()
    assert [run.tags for run in past.session.history.store.list()] == [(), ("int8", "release"), ()]
    assert panel.model.index(1, 9).data() == panel.tags.text() == "int8, release"
    past.bot.keyClicks(panel.filter, "release")
    past.bot.wait(120)
    assert [panel.model.index(row, 1).data() for row in range(panel.model.rowCount())] == ["other.py"]


def test_buttons_are_grey_with_the_reason(past):
    panel = past.panel("history")
    assert not panel.report_button.isEnabled()
    assert panel.report_button.toolTip() == "Select a run"
    click(past, panel, 1)
    assert not panel.report_button.isEnabled()
    assert "no longer exists: /gone" in panel.report_button.toolTip()
    assert panel.recipe_button.isEnabled()


def test_the_report_of_a_run_is_opened(past, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    panel = past.panel("history")
    click(past, panel, 0)
    past.bot.mouseClick(panel.report_button, LEFT)
    assert opened[0].endswith("out/report.html")


def test_the_choices_of_a_run_are_opened_and_those_that_were_open_can_be_brought_back(past, tmp_path):
    past.session.plan.set_default_precision(Precision.FP16)
    panel = past.panel("history")
    click(past, panel, 0)
    past.bot.mouseClick(panel.recipe_button, LEFT)
    past.settle()
    assert past.document.recipe.model.source == "m.py"
    assert past.document.folder == str(tmp_path)
    assert past.window.bars.restore.isVisible()


def test_selected_runs_are_removed_with_the_delete_key(past):
    panel = past.panel("history")
    click(past, panel, 1)
    click(past, panel, 2, Qt.KeyboardModifier.ControlModifier)
    assert not panel.recipe_button.isEnabled()
    panel.table.setFocus()
    past.bot.keyClick(panel.table, Qt.Key.Key_Delete)
    past.settle()
    assert [run.title for run in past.document.history] == ["m.py"]
    assert len(past.session.history.store.list()) == 1


def test_a_run_that_ends_is_listed_at_once(past):
    past.session.trust.trust_file()
    past.settle()
    past.do("run")
    past.settle()
    assert len(past.document.history) == 4


def test_without_runs_the_panel_says_what_it_is_for(desk):
    desk.open_example()
    panel = desk.panel("history")
    desk.settle()
    assert panel._empty._title.text() == "No runs yet"
    assert panel._empty.isVisible()


def test_a_thousand_runs_stay_smooth(desk):
    one = result(target_run("openvino"))
    with desk.session.history.store._open() as database:
        desk.session.history.store.add(one, recipe_toml="", title="m.py")
        names = [row[1] for row in database.execute("PRAGMA table_info(run)") if row[1] != "id"]
        columns = ", ".join(names)
        database.execute("BEGIN")
        for _ in range(999):
            database.execute(f"INSERT INTO run ({columns}) SELECT {columns} FROM run WHERE id = 1")
    desk.open_example()
    panel = desk.panel("history")
    desk.settle()
    assert panel.model.total == 1000
    began_s = time.thread_time()
    desk.session.history.load_history()
    panel.update_from(desk.document)
    panel.table.viewport().grab()
    assert time.thread_time() - began_s < 0.25
    click(desk, panel, 3)
    began_s = time.thread_time()
    panel.model.set_filter("openvino m.py")
    panel.model.sort(4)
    panel.table.viewport().grab(panel.table.viewport().rect().translated(QPoint(0, 0)))
    assert time.thread_time() - began_s < 0.1
