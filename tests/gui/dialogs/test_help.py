"""The help: the pages that ship with the program, one Markdown file each."""

from __future__ import annotations

import re

import pytest

from ace_studio.gui.dialogs.help import HelpDialog, help_pages
from ace_studio.gui.shell.actions import ACTIONS
from ace_studio.records.places import resource_folder


@pytest.fixture(scope="module")
def keyboard_page() -> str:
    return (resource_folder() / "help" / "keyboard.md").read_text(encoding="utf-8")


def test_the_keyboard_page_names_every_shortcut_of_the_window(keyboard_page):
    shortcuts = {row.shortcut for row in ACTIONS if row.shortcut}
    assert {keys for keys in shortcuts if f"| `{keys}` |" not in keyboard_page} == set()


def test_the_keyboard_page_promises_no_key_that_the_window_does_not_have(keyboard_page):
    window = keyboard_page[: keyboard_page.index("## The graph")]
    promised = set(re.findall(r"^\| `([^`]+)` \|", window, flags=re.MULTILINE))
    assert promised - {row.shortcut for row in ACTIONS} == set()


def test_the_help_begins_with_its_index_and_follows_it():
    names = [page.name for page in help_pages()]
    index = (resource_folder() / "help" / "index.md").read_text(encoding="utf-8")
    assert names == ["index.md", *re.findall(r"\]\(([\w-]+\.md)\)", index)]


def test_a_link_of_the_help_opens_the_other_page(desk, qtbot):
    dialog = HelpDialog(desk.window.theme)
    qtbot.addWidget(dialog)
    pages = help_pages()
    assert dialog.contents.count() == len(pages)
    assert dialog.browser.toPlainText()
    dialog._follow(type(dialog.browser.source())(pages[-1].name))
    assert dialog.contents.currentRow() == len(pages) - 1
