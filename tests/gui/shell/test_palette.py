"""The command palette: type a few letters of what you want, Enter does it."""

from __future__ import annotations

from PySide6.QtCore import Qt

from ace_studio.gui.shell.palette import CommandPalette, match_rank


def test_the_palette_does_what_is_typed(desk):
    desk.traced()
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    desk.bot.keyClicks(palette.field, "theme light")
    desk.bot.keyClick(palette.field, Qt.Key.Key_Return)
    desk.settle()
    assert desk.session.settings.get("theme") == "light"


def test_esc_ends_the_palette_and_nothing_else(desk):
    desk.traced()
    desk.engine.by_itself = False
    desk.do("run")
    desk.do("palette")
    palette = desk.window.findChild(CommandPalette)
    desk.bot.keyClick(palette.field, Qt.Key.Key_Down)
    assert palette.list.currentRow() == 1
    desk.bot.keyClick(palette.field, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.window.findChild(CommandPalette) is None
    assert desk.engine.cancelled == []


def test_the_palette_offers_only_what_can_be_done_now(desk):
    words = [text for text, _ in desk.window.actions_.palette_entries()]
    assert "File: Open" in words
    assert not any(text.startswith("Engine: Run") for text in words)


def test_words_rank_before_letters_spread_over_them():
    assert match_rank("run", "Engine: Run") < match_rank("run", "Engine: prune")
    assert match_rank("run", "Engine: prune") < match_rank("run", "Restart under")
    assert match_rank("xyz", "Run") is None
