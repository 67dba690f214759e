"""The capture methods as a tree: a row per method to switch on, off and move, with its problem below."""

from PySide6.QtCore import QPoint, Qt

from ace_studio.gui.panels.capture.method_list import NAME, OUTCOME, method_rows
from ace_studio.records.recipes.recipe import ALL_CAPTURE_METHODS
from tests.gui.capturing import LEFT, OUTCOMES, item


def click_check_box(desk, capture_panel, name):
    rect = capture_panel.methods.visualItemRect(item(capture_panel, name))
    desk.bot.mouseClick(capture_panel.methods.viewport(), LEFT, pos=QPoint(rect.left() + 9, rect.center().y()))
    desk.settle()


def test_every_rung_is_shown_with_its_outcome_in_words_and_its_problem_below_it(capture_panel):
    assert [item(capture_panel, name).text(NAME) for name in ALL_CAPTURE_METHODS] == list(ALL_CAPTURE_METHODS)
    failed = item(capture_panel, "export")
    assert failed.text(OUTCOME) == "could not capture it: a branch on a value"
    assert [(failed.child(at).text(0), failed.child(at).text(1)) for at in range(failed.childCount())] == [
        ("why", "unknown side"), ("what helps", "use where"), ("where", "m.py:3"),
    ]  # fmt: skip
    assert item(capture_panel, "export-strict").text(OUTCOME) == "took too long"
    taken = item(capture_panel, "dynamo")
    assert taken.text(OUTCOME) == "captured, equal to the original – taken"
    assert taken.font(NAME).bold()
    assert (taken.text(2), taken.text(3)) == ("2.0 s", "9")
    assert item(capture_panel, "fx").text(OUTCOME) == "not tried: dynamo gave it"
    assert all(not item(capture_panel, one.name).icon(OUTCOME).isNull() for one in OUTCOMES)


def test_a_rung_is_switched_off_and_on_with_its_check_box_and_undo_works(desk, capture_panel):
    click_check_box(desk, capture_panel, "fx")
    assert desk.document.recipe.capture.rungs == ("export", "export-strict", "dynamo", "partial")
    assert item(capture_panel, "fx").checkState(NAME) is Qt.CheckState.Unchecked
    desk.do("undo")
    assert desk.document.recipe.capture.rungs == ALL_CAPTURE_METHODS
    assert item(capture_panel, "fx").checkState(NAME) is Qt.CheckState.Checked


def test_the_last_rung_cannot_be_switched_off(desk, capture_panel):
    desk.session.choices.set_rungs(["fx"])
    desk.settle()
    click_check_box(desk, capture_panel, "fx")
    assert desk.document.recipe.capture.rungs == ("fx",)
    assert item(capture_panel, "fx").checkState(NAME) is Qt.CheckState.Checked
    assert "At least one capture method" in desk.document.problems[-1].what


def test_rungs_that_are_off_come_last(desk, capture_panel):
    desk.session.choices.set_rungs(["partial", "dynamo"])
    rows = method_rows(desk.document)
    assert [row.name for row in rows] == ["partial", "dynamo", "export", "export-strict", "fx"]
    assert [row.is_on for row in rows] == [True, True, False, False, False]
