"""The panel: the list of past runs, and from it the comparison of two and the line of one model."""

import os
import subprocess
import sys
from datetime import UTC, datetime

from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QPushButton

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.kept.autosave import StartedRun
from tests.gui.panels.history.past_runs import LEFT, click
from tests.session.fake_engine_link import result, target_run


def cell(panel, row, title):
    at = [each.title for each in panel.model.columns].index(title)
    return panel.model.index(row, at).data()


def search(past, panel, words):
    past.bot.keyClicks(panel.filter, words)
    past.bot.wait(120)
    return [cell(panel, row, "model") for row in range(panel.model.rowCount())]


def test_runs_are_listed_newest_first_with_what_was_chosen(past):
    panel = past.panel("history")
    shown = [panel.model.index(row, 1).data() for row in range(panel.model.rowCount())]
    assert shown == ["m.py", "other.py", "old.py"]
    assert cell(panel, 0, "chosen") == "openvino bf16"
    assert cell(panel, 0, "speed-up") == "2.00×"
    assert panel._count.text() == "3 runs"


def test_columns_that_are_empty_in_all_rows_are_left_out(past):
    panel = past.panel("history")
    assert [column.title for column in panel.model.columns][:4] == ["when", "model", "chosen", "outcome"]
    past.session.history.set_name(past.document.history[0].id, "before pruning")
    past.settle()
    titles = [column.title for column in panel.model.columns]
    assert titles[2:4] == ["chosen", "name"]
    assert not {"note", "tags"} & {*titles}


def test_runs_of_one_minute_are_told_apart_by_their_seconds(past):
    panel = past.panel("history")
    assert len(cell(panel, 0, "when")) == len("2026-11-03 12:00")
    for second in (10, 40):
        date = datetime(2026, 11, 9, 12, 0, second, tzinfo=UTC)
        past.session.history.store.add(result(target_run("eager")), recipe_toml="", title="m.py", date=date)
    past.session.history.load_history()
    past.settle()
    assert [cell(panel, row, "when")[-3:] for row in (0, 1)] == [":40", ":10"]


def test_name_tags_and_note_are_there_while_one_run_is_selected(past):
    panel = past.panel("history")
    assert not panel.note.isVisible()
    click(past, panel, 0)
    assert panel.note.isVisible()
    click(past, panel, 1, Qt.KeyboardModifier.ControlModifier)
    assert not panel.note.isVisible()


def test_a_run_is_selected_in_german():
    chosen = f"{__file__}::test_name_tags_and_note_are_there_while_one_run_is_selected"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tests.gui.in_german"]
    done = subprocess.run([*command, chosen], check=False, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout


def test_in_a_small_panel_the_controls_have_one_line_and_the_list_the_rest(past):
    past.window.resize(960, 540)
    past.settle()
    panel = past.panel("history")
    tops = {each.mapTo(panel, each.rect().center()).y() for each in (panel.filter, panel.more_button, panel._count)}
    assert max(tops) - min(tops) < 4
    assert panel.table.y() < 50
    assert panel.more_button.menu() is panel.menu


def test_the_filter_keeps_runs_that_hold_every_word(past):
    panel = past.panel("history")
    past.bot.keyClicks(panel.filter, "eager old")
    past.bot.wait(120)
    assert [panel.model.index(row, 1).data() for row in range(panel.model.rowCount())] == ["old.py"]
    assert panel._count.text() == "1 of 3 runs"


def test_a_run_is_tagged_in_the_panel_and_found_by_its_tag(past):
    panel = past.panel("history")
    assert not panel.tags.isVisible()
    click(past, panel, 1)
    past.bot.keyClicks(panel.tags, "release, int8 ,")
    past.bot.keyClick(panel.tags, Qt.Key.Key_Return)
    past.settle()
    assert [run.tags for run in past.session.history.store.list()] == [(), ("int8", "release"), ()]
    assert cell(panel, 1, "tags") == panel.tags.text() == "int8, release"
    past.bot.keyClicks(panel.filter, "release")
    past.bot.wait(120)
    assert [panel.model.index(row, 1).data() for row in range(panel.model.rowCount())] == ["other.py"]


def test_a_run_gets_a_name_that_is_shown_wherever_the_run_is(past):
    panel = past.panel("history")
    click(past, panel, 1)
    panel.pin_actions[0].trigger()
    past.bot.keyClicks(panel.name, "before pruning")
    past.bot.keyClick(panel.name, Qt.Key.Key_Return)
    past.settle()
    assert cell(panel, 1, "name") == panel.name.text() == "before pruning"
    assert past.window.bars.pins.accessibleName().startswith("Pinned. A: before pruning, best eager")
    past.bot.mouseClick(panel.look_button, LEFT)
    past.settle()
    assert ". before pruning: ok, eager" in past.window.bars.past.accessibleName()
    past.session.history.leave_past_run()
    assert search(past, past.panel("history"), "pruning") == ["other.py"]


def test_a_run_that_was_stopped_says_so_is_found_and_shows_its_figures_until_then(past):
    store = past.session.history.store
    run = StartedRun.of(Recipe(model=ModelChoice(source="m.py")), title="m.py", folder="/gone", output="/gone")
    store.add_unfinished(run, Problem(code=ErrorCode.CANCELLED, what="x"), result(target_run("onnxruntime")))
    panel = past.panel("history")
    past.bot.mouseClick(panel.refresh_button, LEFT)
    past.settle()
    assert [cell(panel, 0, title) for title in ("model", "outcome", "chosen", "speed-up")] == [
        "m.py", "cancelled", "–", "–"]  # fmt: skip
    assert search(past, panel, "cancelled") == ["m.py"]
    click(past, panel, 0)
    panel.time_action.trigger()
    past.settle()
    assert [run.status for run in panel.over_time.runs] == ["ok"]
    past.session.history.look_at_run(past.document.history[0].id)
    past.settle()
    assert [run.target for run in past.document.runs] == ["onnxruntime"]
    words = "The run did not come to its end (cancelled): figures until then"
    assert past.window.workbench.panel("results")._verdict.text() == words


def test_buttons_are_grey_with_the_reason(past):
    panel = past.panel("history")
    assert not panel.report_action.isEnabled()
    assert panel.report_action.toolTip() == "Select a run"
    click(past, panel, 1)
    assert not panel.report_action.isEnabled()
    assert "no longer exists: /gone" in panel.report_action.toolTip()
    assert panel.recipe_action.isEnabled()


def test_the_report_of_a_run_is_opened(past, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    panel = past.panel("history")
    click(past, panel, 0)
    panel.report_action.trigger()
    assert opened[0].endswith("out/report.html")


def test_the_choices_of_a_run_are_opened_and_those_that_were_open_can_be_brought_back(past, tmp_path):
    past.session.plan.set_default_precision(Precision.FP16)
    panel = past.panel("history")
    click(past, panel, 0)
    panel.recipe_action.trigger()
    past.settle()
    assert past.document.recipe.model.source == "m.py"
    assert past.document.folder == str(tmp_path)
    assert past.window.bars.restore.isVisible()


def test_selected_runs_are_removed_with_the_delete_key(past):
    panel = past.panel("history")
    click(past, panel, 1)
    click(past, panel, 2, Qt.KeyboardModifier.ControlModifier)
    assert not panel.recipe_action.isEnabled()
    panel.table.setFocus()
    past.bot.keyClick(panel.table, Qt.Key.Key_Delete)
    past.settle()
    assert [run.title for run in past.document.history] == ["m.py"]
    assert len(past.session.history.store.list()) == 1


def test_two_selected_runs_stay_selected_when_the_list_is_read_again(past):
    panel = past.panel("history")
    click(past, panel, 1)
    click(past, panel, 2, Qt.KeyboardModifier.ControlModifier)
    kept = [run.id for run in panel._chosen()]
    past.session.history.set_tags(past.document.history[0].id, ["a"])
    past.settle()
    assert past.document.history[0].tags == ("a",)
    assert len(kept) == 2
    assert [run.id for run in panel._chosen()] == kept


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
    assert panel._count.text().endswith("runs …")
    assert panel._count.toolTip().startswith("Only the newest 1,000 are listed")
    desk.session.history.load_history()
    desk.settle()
    asked = []
    show = panel.model.data
    panel.model.data = lambda index, role: asked.append(index.row()) or show(index, role)
    panel.table.viewport().grab()
    del panel.model.data
    assert max(asked, default=0) < 60


def test_a_double_click_looks_at_a_run_once(past, monkeypatch):
    panel, looked = past.panel("history"), []
    monkeypatch.setattr(past.session.history, "look_at_run", looked.append)
    click(past, panel, 1)
    place = panel.table.visualRect(panel.model.index(1, 1)).center()
    past.bot.mouseDClick(panel.table.viewport(), LEFT, pos=place)
    assert looked == [past.document.history[1].id]


def test_a_past_run_is_looked_at_in_all_panels_and_the_present_comes_back(past):
    past.session.plan.set_default_precision(Precision.FP16)
    panel = past.panel("history")
    click(past, panel, 0)
    past.bot.mouseClick(panel.look_button, LEFT)
    past.settle()
    assert past.window.workbench.panel("results").isVisible()
    assert past.window.bars.past.isVisible()
    assert not past.window.workbench._slots["plan"].isEnabled()
    assert past.document.runs[0].target == "openvino"
    past.session.plan.set_default_precision(Precision.BF16)
    assert past.document.recipe.plan.default is not Precision.BF16
    assert not past.window.actions_.by_id["run"].isEnabled()
    back = next(each for each in past.window.bars.past.findChildren(QPushButton) if each.text().startswith("Back"))
    past.bot.mouseClick(back, LEFT)
    past.settle()
    assert not past.window.bars.past.isVisible()
    assert past.document.recipe.plan.default is Precision.FP16
    assert past.document.is_dirty
    assert past.window.workbench._slots["plan"].isEnabled()


def test_a_removal_is_undone(past):
    panel = past.panel("history")
    click(past, panel, 1)
    assert not panel.undo_action.isVisible()
    panel.remove_action.trigger()
    past.settle()
    assert [run.title for run in past.document.history] == ["m.py", "old.py"]
    panel.undo_action.trigger()
    past.settle()
    assert [run.title for run in past.document.history] == ["m.py", "other.py", "old.py"]
    assert not panel.undo_action.isVisible()


def test_a_note_is_kept_and_found(past):
    panel = past.panel("history")
    click(past, panel, 1)
    past.bot.keyClicks(panel.note, "before the fix")
    past.bot.keyClick(panel.note, Qt.Key.Key_Return)
    past.settle()
    assert past.session.history.store.list()[1].note == "before the fix"
    past.bot.keyClicks(panel.filter, "fix")
    past.bot.wait(120)
    assert panel.model.rowCount() == 1


def test_two_runs_are_compared_and_one_is_pinned_after_the_other(past):
    panel = past.panel("history")
    click(past, panel, 0)
    click(past, panel, 2, Qt.KeyboardModifier.ControlModifier)
    past.bot.mouseClick(panel.compare_button, LEFT)
    past.settle()
    assert [pin.run_id for pin in past.document.pins] == [1, 3]
    assert past.document.comparison is not None
    assert past.window.workbench.panel("results").isVisible()
    past.session.comparing.clear()
    panel = past.panel("history")
    for row, pin in ((1, panel.pin_actions[0]), (2, panel.pin_actions[1])):
        click(past, panel, row)
        pin.trigger()
        past.settle()
    assert [pin.run_id for pin in past.document.pins] == [2, 1]
