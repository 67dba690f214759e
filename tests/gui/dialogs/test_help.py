"""The help in a window of its own: contents or what was found at the left, the page at the right."""

import re

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtTest import QTest

from ace_studio.gui.dialogs.help import HelpDialog, help_pages, help_sections, search
from ace_studio.gui.shell.actions import ACTIONS
from ace_studio.gui.shell.panel_table import PANELS
from ace_studio.gui.style.theme import THEMES
from ace_studio.gui.widgets.small import GAP
from ace_studio.records.places import resource_folder
from tests.gui.touring import tour_of_dialogs

ADDRESSES = {section.address for section in help_sections()}


@pytest.fixture(scope="module")
def keyboard_page() -> str:
    return (resource_folder() / "help" / "keyboard.md").read_text(encoding="utf-8")


@pytest.fixture
def helping(desk) -> HelpDialog:
    desk.do("help")
    return shown(desk)


def shown(desk) -> HelpDialog:
    (dialog,) = [one for one in desk.window.findChildren(HelpDialog) if one.isVisible()]
    return dialog


def press_f1(desk, widget) -> str:
    widget.window().activateWindow()
    widget.setFocus()
    desk.bot.waitUntil(widget.hasFocus)
    QTest.keyClick(widget, Qt.Key.Key_F1)
    desk.settle()
    url = shown(desk).browser.source()
    return url.fileName().removesuffix(".md") + (f"#{url.fragment()}" if url.hasFragment() else "")


def test_the_keyboard_page_names_every_shortcut_of_the_window(keyboard_page):
    shortcuts = {row.shortcut for row in ACTIONS if row.shortcut}
    assert {keys for keys in shortcuts if f"| `{keys}` |" not in keyboard_page} == set()


def test_the_keyboard_page_promises_no_key_that_the_window_does_not_have(keyboard_page):
    window = keyboard_page[: keyboard_page.index("## The graph")]
    promised = set(re.findall(r"^\| `([^`]+)` \|", window, flags=re.MULTILINE))
    assert promised - {row.shortcut for row in ACTIONS} == set()


def test_every_panel_every_section_of_the_plan_and_every_dialog_names_a_page_that_exists(desk):
    desk.ran()
    panels = {row.id: desk.window.workbench.panel(row.id) for row in PANELS}
    named = {name: panel.property("help") for name, panel in panels.items()}
    named |= {name: section.property("help") for name, section in panels["plan"].sections.items()}
    named |= {name: dialog.property("help") for name, dialog in tour_of_dialogs(desk) if name != "help"}
    named["graph"] = desk.window.workbench.panel("graph").property("help")
    assert {name: page for name, page in named.items() if page not in ADDRESSES} == {}


def test_f1_opens_the_page_of_what_has_the_keyboard_and_the_window_stays_one(desk):
    assert press_f1(desk, desk.window.start_page.open_button) == "getting-started"
    desk.traced()
    plan = desk.panel("plan")
    assert press_f1(desk, plan.sections["Targets"].head) == "targets"
    assert press_f1(desk, desk.panel("run").log) == "window#run"
    desk.do("settings")
    dialog = next(one for one in desk.window.children() if one.__class__.__name__ == "SettingsDialog")
    assert press_f1(desk, dialog.editors["theme"]) == "window#settings"


def test_the_section_that_was_asked_for_is_at_the_top_of_the_page(desk, helping):
    helping.go_to("window#charts")
    desk.settle()
    browser = helping.browser
    assert browser.cursorForPosition(browser.viewport().rect().topLeft()).block().text() in {"Charts", ""}
    assert browser.verticalScrollBar().value() > 0
    assert helping.contents.currentItem().text(0) == "Charts"


def test_what_is_typed_lists_the_sections_that_contain_it_and_marks_it_in_the_page(desk, helping):
    QTest.keyClicks(helping.search, "libEGL")
    QTest.keyClick(helping.search, Qt.Key.Key_Return)
    desk.settle()
    assert helping.browser.source().fileName() == "troubleshooting.md"
    assert {mark.cursor.selectedText() for mark in helping.browser.extraSelections()} >= {"libEGL"}
    helping.search.setText("zebra crossing")
    desk.bot.waitUntil(helping.nothing.isVisible)
    helping.search.clear()
    desk.bot.waitUntil(lambda: helping.contents.topLevelItemCount() == len(help_pages()))
    assert helping.browser.extraSelections() == []


def test_back_and_forward_go_through_what_was_read(desk, helping):
    first = helping.browser.source().fileName()
    assert not helping.back.isEnabled()
    helping.browser.anchorClicked.emit(QUrl("plan.md"))
    helping.browser.anchorClicked.emit(QUrl("goals.md#the-search"))
    QTest.mouseClick(helping.back, Qt.MouseButton.LeftButton)
    assert helping.browser.source().fileName() == "plan.md"
    QTest.mouseClick(helping.back, Qt.MouseButton.LeftButton)
    assert helping.browser.source().fileName() == first
    QTest.mouseClick(helping.forward, Qt.MouseButton.LeftButton)
    assert helping.browser.source().fileName() == "plan.md"


def test_its_size_is_remembered(desk, helping):
    helping.resize(700, 500)
    helping.close()
    desk.do("help")
    assert (shown(desk).width(), shown(desk).height()) == (700, 500)


@pytest.mark.parametrize("name", THEMES)
def test_code_and_tables_of_a_page_are_in_the_colours_of_the_theme(desk, helping, name):
    desk.session.set_setting("theme", name)
    helping.go_to("keyboard")
    desk.settle()
    document = helping.browser.document()
    table = document.rootFrame().childFrames()[0]
    assert table.format().borderBrush().color().name() == THEMES[name].border
    code = table.cellAt(1, 0).firstCursorPosition().block().begin().fragment().charFormat()
    assert code.fontFixedPitch() and code.background().color().name() == THEMES[name].raised


def test_only_headings_have_the_room_of_headings(desk, helping):
    helping.go_to("goals")
    desk.settle()
    block, roomy = helping.browser.document().begin(), []
    while block.isValid():
        if block.blockFormat().topMargin() == 2 * GAP:
            roomy.append(block)
        block = block.next()
    assert roomy and [block.text() for block in roomy if not block.blockFormat().headingLevel()] == []


def test_a_picture_beside_a_page_is_shown(desk, helping, tmp_path):
    desk.window.grab().save(str(tmp_path / "shot.png"))
    (tmp_path / "page.md").write_text("# A page\n\n![the window](shot.png)\n")
    helping.browser.setSource(QUrl.fromLocalFile(str(tmp_path / "page.md")))
    desk.settle()
    assert helping.browser.document().size().height() > 300


def test_the_help_begins_with_its_index_and_follows_it():
    names = [page.name for page in help_pages()]
    index = (resource_folder() / "help" / "index.md").read_text(encoding="utf-8")
    assert names == ["index.md", *re.findall(r"\]\(([\w-]+\.md)\)", index)]


def test_every_page_begins_a_section_and_comments_in_code_do_not():
    assert [section.page for section in help_sections() if section.level == 1] == [*help_pages()]


def test_every_link_to_a_section_leads_to_one():
    addresses = {section.address for section in help_sections()}
    for page in help_pages():
        links = re.findall(r"\]\(([\w-]*)(?:\.md)?#([\w-]+)\)", page.read_text(encoding="utf-8"))
        assert {f"{name or page.stem}#{title}" for name, title in links} - addresses == set(), page.name


def test_a_search_finds_sections_with_all_words_those_with_a_word_in_the_title_first():
    sections = [section.address for section, _ in search("Fine-tuning")]
    assert sections[0].startswith("compress-more") and len(sections) > 2
    hits = search("exit code")
    assert "command-line#exit-codes" in {section.address for section, _ in hits}
    assert all("exit" in f"{hit.title} {hit.text}".casefold() for hit, _ in hits)
    assert "deploy" in [section.address for section, _ in search("deploy C++")]
    assert search("") == [] and search("zebra int8") == []


def test_what_is_found_is_shown_with_the_text_around_it():
    section, snippet = search("libEGL")[0]
    assert section.address.startswith("troubleshooting#") and len(snippet) <= 70
    assert search("ratchet") == [] or "ratchet" in search("ratchet")[0][1]
