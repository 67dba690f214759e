"""Reads and writes recipe values that are typed as one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ace_studio.gui.panels.plan.field_row import FieldKind


@dataclass(frozen=True, kw_only=True)
class TextForm:
    """How one kind of value is read and written."""

    read: Callable[[str], Any]
    """Raises ValueError with the text for the line below."""
    write: Callable[[Any], str]


def read_words(text: str) -> tuple[str, ...]:
    """``a, b`` -> words; empty ones are left out."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def read_counts(text: str) -> tuple[int, ...]:
    """``1, 8, 32`` -> whole numbers from 1 on, each once.

    Raises: ValueError naming the first word that is none.
    """
    found: list[int] = []
    for word in read_words(text):
        if not (word.isascii() and word.isdigit() and int(word) >= 1):
            raise ValueError(f"'{word}' is not a whole number from 1 on. Write for example 1, 8, 32.")
        found.append(int(word))
    return tuple(dict.fromkeys(found))


def read_pairs(text: str) -> dict[str, str]:
    """``cache = 1, mask = 2`` -> input and the output that it gets.

    Raises: ValueError naming the first part that is no pair, or an input that stands twice.
    """
    found: dict[str, str] = {}
    for part in read_words(text):
        name, sign, value = (word.strip() for word in part.partition("="))
        if not (name and sign and value):
            raise ValueError(f"'{part}' is not a pair. Write an input and its output: cache = 1.")
        if name in found:
            raise ValueError(f"'{name}' appears twice. An input gets one output.")
        found[name] = value
    return found


def write_list(value: Iterable[object]) -> str:
    """Values with commas between them."""
    return ", ".join(map(str, value))


def write_pairs(value: Mapping[str, str]) -> str:
    """Write pairs as `read_pairs` reads them."""
    return ", ".join(f"{name} = {output}" for name, output in value.items())


TEXT_FORMS: dict[FieldKind, TextForm] = {
    FieldKind.TEXT: TextForm(read=str.strip, write=str),
    FieldKind.WORDS: TextForm(read=read_words, write=write_list),
    FieldKind.COUNTS: TextForm(read=read_counts, write=write_list),
    FieldKind.PAIRS: TextForm(read=read_pairs, write=write_pairs),
}
"""Kind of field -> how its text is read and written."""
