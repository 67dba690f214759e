"""The command palette: type a few letters of what you want, Enter does it."""

import pytest
from PySide6.QtCore import Qt

from ace_studio.gui.graph_view.bars import SearchBar
from ace_studio.gui.shell.actions import ACTIONS
from ace_studio.gui.shell.palette import CommandPalette, match_rank
from ace_studio.records.places import example_recipe


def test_the_palette_does_what_is_typed(desk):
    desk.traced()
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    desk.bot.keyClicks(palette.field, "theme light")
    desk.bot.keyClick(palette.field, Qt.Key.Key_Return)
    desk.settle()
    assert desk.session.settings.get("theme") == "light"


def test_esc_ends_the_palette_and_nothing_else(desk):
    desk.running()
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    desk.bot.keyClick(palette.field, Qt.Key.Key_Down)
    assert palette.list.currentRow() == 1
    desk.bot.keyClick(palette.field, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.window.findChild(CommandPalette) is None
    assert desk.engine.cancelled == []


def test_the_palette_lists_every_command_with_its_shortcut_and_says_why_one_cannot_be_done(desk):
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    rows = [palette.list.item(at).text() for at in range(palette.list.count())]
    assert len(rows) == len(ACTIONS)
    assert "File: Open    Ctrl+O" in rows
    assert "Engine: Run    F6    (Open a model first)" in rows
    desk.bot.keyClicks(palette.field, "engine: run")
    desk.bot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible(), "nothing was done, so it stays"
    assert desk.engine.requests == []


def test_letters_that_no_command_has_are_said_to_fit_none(desk):
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    desk.bot.keyClicks(palette.field, "qqqq")
    assert palette.list.item(0).text() == "No command has these letters in its name"
    desk.bot.keyClick(palette.field, Qt.Key.Key_Down)
    desk.bot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible()


def test_words_rank_before_letters_spread_over_them():
    assert match_rank("run", "Engine: Run") < match_rank("run", "Engine: prune")
    assert match_rank("run", "Engine: prune") < match_rank("run", "Restart under")
    assert match_rank("xyz", "Run") is None


@pytest.mark.parametrize("key", [Qt.Key.Key_Escape, Qt.Key.Key_Return])
def test_the_keyboard_returns_to_where_it_was_when_the_palette_closes(desk, key):
    desk.traced()
    field = desk.window.findChild(SearchBar).field
    field.setFocus()
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    desk.bot.keyClicks(palette.field, "theme light")
    desk.bot.keyClick(palette.field, key)
    desk.settle()
    assert field.hasFocus()


def test_what_can_be_done_is_told_anew_while_the_palette_is_open(desk):
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    desk.bot.keyClicks(palette.field, "trust this")
    assert palette.list.currentItem().text() == "Engine: Trust this file    (No file waits for it)"
    desk.session.files.open_path(str(example_recipe()))
    desk.settle()
    assert palette.list.currentItem().text() == "Engine: Trust this file"
    desk.bot.keyClick(palette.field, Qt.Key.Key_Return)
    desk.settle()
    assert desk.document.is_trusted
