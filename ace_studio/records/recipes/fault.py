"""A mistake in a recipe: its place in the document, and the text of its message."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from ace_studio.records.recipes.toml_lines import KeyPath


@dataclass(frozen=True)
class Fault:
    """One mistake at one place of the document; its line is found later."""

    path: KeyPath
    what: str
    why: str = ""
    remedy: str = ""


def path_text(path: KeyPath) -> str:
    """A place in the document as a person writes it: ``[goal] max_drop``, ``[inputs] rows[2].x``."""
    text = ""
    for depth, part in enumerate(path):
        if isinstance(part, int):
            text += f"[{part + 1}]"
        elif depth == 0:
            text = part
        else:
            text += ("" if depth == 1 else ".") + (f'"{part}"' if "." in part else part)
        if depth == 0 and len(path) > 1:
            text = f"[{text}] "
    return text


def nearest_hint(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the closest known word, or the list of known words."""
    choices = list(known)
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    close = close or [choice for choice in choices if len(word) > 2 and choice.startswith(word)][:1]
    return f"did you mean '{close[0]}'?" if close else "use one of: " + ", ".join(choices)


def listing_hint(word: str, known: Iterable[str]) -> str:
    """As `nearest_hint`, with the whole list behind the suggestion."""
    choices = list(known)
    hint = nearest_hint(word, choices)
    return f"{hint} (there are {', '.join(choices)})" if hint.startswith("did you mean") else hint
