"""A row of a form: one key of one table of the recipe, and how it is edited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ace_studio.session.document import Document


def functions_of(document: Document) -> Sequence[tuple[str, str]]:
    """The functions of the opened file, as text and value."""
    entries = document.file.entries if document.file else ()
    return [(f"{one.name}()", one.name) for one in entries if one.kind == "function"]


class FieldKind(StrEnum):
    """How a key is edited."""

    CHOICE = "choice"
    """One of a few words."""
    NUMBER = "number"
    COUNT = "count"
    """A whole number."""
    FLAG = "flag"
    WORDS = "words"
    """Several texts, separated by commas."""
    TEXT = "text"
    TICKS = "ticks"
    """Any of a few words, in their order."""
    COUNTS = "counts"
    """Several whole numbers from 1 on, separated by commas."""
    PAIRS = "pairs"
    """Several ``name = value``, separated by commas."""
    NAME = "name"
    """A name that is typed or chosen from the known ones; perhaps a file."""


@dataclass(frozen=True, kw_only=True)
class FieldRow:
    """One key of one table of the recipe."""

    table: str
    """``prune``, or ``measure.decode`` for a table in a table."""
    key: str
    text: str
    kind: FieldKind
    options: tuple[tuple[str, str], ...] = ()
    """Value and what it means, for choices and ticks."""
    low: float = 0.0
    high: float = 1e6
    decimals: int = 3
    suffix: str = ""
    unset: str = ""
    """Words for the lowest number if it stands for None, and for an empty text."""
    tip: str = ""
    about: str = ""
    """The line below the editor, if the value has no meaning of its own."""
    takes_file: bool = False
    """A name that may be a file instead."""
    known: Callable[[Document], Sequence[tuple[str, str]]] = functions_of
    """Names that are offered, each as text and value."""
    why_grey: Callable[[Document], str] = lambda _: ""
    """Why the key cannot be edited now; empty if it can."""
    problem: Callable[[Document], str] = lambda _: ""
    """What is wrong with the recipe's value; empty if nothing is."""

    @property
    def name(self) -> str:
        """``table.key``."""
        return f"{self.table}.{self.key}"
