"""Tables for spreadsheets, as CSV or as text with tabs: no cell is a formula, whatever a file or a model is called."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from ace_studio.records.errors import visible

_STARTS = ("=", "+", "-", "@", "\t", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with (also in full width), or what a spreadsheet takes away in front of one."""
_INNER = re.compile(r"(?<=[;|\n])(?=\s*[=+@\uff1d\uff0b\uff20-])")
"""Where a formula would begin if a spreadsheet took another separator, as those do whose decimal sign is the comma."""
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?( ?%| [a-zµ]{1,8})?|[+-]?(inf|nan)|-", re.IGNORECASE)


def spreadsheet_text(rows: Iterable[Sequence[object]], *, separator: str = ",") -> str:
    """The rows as text, one line each. Source of the rule: OWASP, CSV injection."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows([as_cell(one) for one in row] for row in rows)
    return text.getvalue()


def as_cell(value: object) -> object:
    """The value; a text that would be a formula gets a ``'`` in front, and is `visible`: a CR would end the row."""
    if not isinstance(value, str):
        return value
    is_formula = value.startswith(_STARTS) and not _NUMBER.fullmatch(value)
    return visible(_INNER.sub("'", f"'{value}" if is_formula else value))


def spreadsheet_rows(text: str, *, separator: str = "\t") -> list[list[str]]:
    """The rows of such a text, or of what a spreadsheet copied, without empty ones; none if it is no table."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error:
        return []
    return [[_from_cell(cell) for cell in row] for row in rows if any(cell.strip() for cell in row)]


def _from_cell(text: str) -> str:
    return text[1:] if text.startswith("'") and text[1:].startswith(_STARTS) else text
