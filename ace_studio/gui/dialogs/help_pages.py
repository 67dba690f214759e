"""The pages of the help: one Markdown file each, cut into sections that have addresses and can be searched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ace_studio.records.places import resource_folder

SNIPPET = 70
"""Characters shown of the text around what was searched for."""


@dataclass(frozen=True)
class HelpSection:
    """A heading and the text under it, up to the next heading."""

    page: Path
    title: str
    level: int
    """1 for the title of the page."""
    text: str
    """Without marks, in one line."""

    @property
    def address(self) -> str:
        """``page`` or ``page#section``."""
        return self.page.stem if self.level == 1 else f"{self.page.stem}#{slug(self.title)}"


def slug(title: str) -> str:
    """A heading as a part of an address, as web servers of repositories write it."""
    return re.sub(r"[^\w]+", "-", title.casefold()).strip("-")


def help_folder() -> Path:
    """Where the pages are."""
    return resource_folder() / "help"


def help_pages() -> tuple[Path, ...]:
    """The index, the pages in its order, then what it does not name."""
    folder = help_folder()
    index = folder / "index.md"
    linked = re.findall(r"\]\(([\w-]+\.md)\)", index.read_text(encoding="utf-8")) if index.is_file() else []
    named = [folder / name for name in ("index.md", *linked)]
    others = sorted(page for page in folder.glob("*.md") if page not in named)
    return tuple(page for page in (*named, *others) if page.is_file())


@cache
def help_sections() -> tuple[HelpSection, ...]:
    """All sections of all pages, in order."""
    return tuple(section for page in help_pages() for section in _sections_of(page))


def _sections_of(page: Path) -> list[HelpSection]:
    blocks: list[tuple[str, list[str]]] = []
    is_code = False
    for line in page.read_text(encoding="utf-8").splitlines():
        is_code ^= line.startswith("```")
        if line.startswith("#") and not is_code:
            blocks.append((line, []))
        elif blocks:
            blocks[-1][1].append(line)
    return [
        HelpSection(page, _plain(head.lstrip("#")), len(head) - len(head.lstrip("#")), _plain(" ".join(lines)))
        for head, lines in blocks
    ]


def _plain(text: str) -> str:
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"[`*|]|-{3,}", " ", text).split())


def search(words: str) -> list[tuple[HelpSection, str]]:
    """The sections that contain all words, those with a word in their title first, each with the text around a word."""
    wanted = words.casefold().split()
    hits = []
    for at, section in enumerate(help_sections()):
        title, text = section.title.casefold(), section.text.casefold()
        if wanted and all(word in title or word in text for word in wanted):
            titled = sum(word in title for word in wanted)
            first = min((place for word in wanted if (place := text.find(word)) >= 0), default=0)
            start = section.text.rfind(" ", 0, max(0, first - SNIPPET // 3)) + 1
            hits.append((-titled, -sum(map(text.count, wanted)), at, section, section.text[start : start + SNIPPET]))
    return [(section, snippet) for *_, section, snippet in sorted(hits, key=lambda hit: hit[:3])]
