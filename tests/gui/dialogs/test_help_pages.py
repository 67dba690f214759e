"""The pages of the help, their sections, and what a search finds in them."""

from __future__ import annotations

import re

from ace_studio.gui.dialogs.help_pages import help_pages, help_sections, search
from ace_studio.records.places import resource_folder


def test_the_help_begins_with_its_index_and_follows_it():
    names = [page.name for page in help_pages()]
    index = (resource_folder() / "help" / "index.md").read_text(encoding="utf-8")
    assert names == ["index.md", *re.findall(r"\]\(([\w-]+\.md)\)", index)]


def test_every_page_begins_a_section_and_comments_in_code_do_not():
    assert [section.page for section in help_sections() if section.level == 1] == [*help_pages()]


def test_a_search_finds_sections_with_all_words_those_with_a_word_in_the_title_first():
    sections = [section.address for section, _ in search("Fine-tuning")]
    assert sections[0].startswith("compress-more") and len(sections) > 2
    hits = search("exit code")
    assert "command-line#exit-codes" in {section.address for section, _ in hits}
    assert all("exit" in f"{hit.title} {hit.text}".casefold() for hit, _ in hits)
    assert search("") == [] and search("zebra int8") == []


def test_what_is_found_is_shown_with_the_text_around_it():
    section, snippet = search("libEGL")[0]
    assert section.address.startswith("troubleshooting#") and len(snippet) <= 70
    assert search("ratchet") == [] or "ratchet" in search("ratchet")[0][1]
