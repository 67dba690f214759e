"""The code blocks of the help pages and of the README, and what their info strings say to the tests.

A renderer takes the first word of an info string for the language and ignores the rest. The tests read there:

- ``file=NAME``: the block is the content of this file, which the blocks below it use;
- ``needs=NAME``: it runs where this module can be imported, or this variable of the environment is set;
- ``not-run: REASON``, last: no test runs it, and why.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = {"bash", "python", "toml", "cpp", "json", "text"}
_BLOCK = re.compile(r"^```(?P<info>[^\n]+)\n(?P<text>.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_PROGRAMS = ("ace-studio", "packaging/ace")


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    page: str
    line: int
    info: str
    text: str

    @property
    def language(self) -> str:
        return self.info.split()[0]

    @property
    def reason(self) -> str:
        """Why no test runs it; empty for one that runs."""
        return self.info.partition("not-run:")[2].strip()

    def said(self, key: str) -> str:
        """What stands behind ``key=`` in the info string."""
        found = re.search(rf"\b{key}=(\S+)", self.info)
        return found.group(1) if found else ""

    @property
    def lines(self) -> list[str]:
        """The command lines of a shell block: continued lines joined."""
        return self.text.replace("\\\n", " ").splitlines()

    @property
    def commands(self) -> list[list[str]]:
        """The words after the name of the program in each command line of ACE Studio."""
        words = [shlex.split(line, comments=True) for line in self.lines]
        return [rest for first, *rest in filter(None, words) if first in _PROGRAMS]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def page_names() -> list[str]:
    """README.md, and the pages of the help."""
    return ["README.md", *(f"resources/help/{path.name}" for path in sorted((ROOT / "resources/help").glob("*.md")))]


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found["info"], found["text"])
        for found in _BLOCK.finditer(text)
    ]
