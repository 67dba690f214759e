"""The search field with its count, and buttons for the next and the previous match."""

from PySide6.QtCore import Qt

from tests.gui.looking import SHIFT, middle, row


def test_a_broken_pattern_is_said_and_finds_nothing(view):
    assert view.search("/(/") == ()
    assert "not a pattern" in view.search_bar.count.text()


def test_next_and_previous_open_what_hides_a_match_and_go_round(view, qtbot):
    view.focus_search()
    qtbot.keyClicks(view.search_bar.field, "gelu")
    assert "5 found" in view.search_bar.count.text()
    qtbot.keyClick(view.search_bar.field, Qt.Key.Key_Return)
    assert view.selected_ops == ("act_0",)
    assert view.picture.scene.visible[row(view, "act_0")]
    assert view.canvas.rect().contains(middle(view, row(view, "act_0")))
    qtbot.keyClick(view.search_bar.field, Qt.Key.Key_Return, SHIFT)
    assert view.selected_ops == ("act_4",)
    assert view.search_bar.count.text() == "5 of 5"
