"""Finds ops by the words in their columns.

A query is words, all of which must be found, in any case: ``conv 1x64``. A word may name a column: ``op:conv``,
``name:``, ``module:``, ``shape:``, ``dtype:``, ``device:``. ``/.../`` is a regular expression that one of the
columns must contain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ace_studio.gui.graph_layout.sizes import short_dtype
from ace_studio.records.graph import GraphTable

COLUMNS = ("name", "op", "module", "shape", "dtype", "device")


class SearchIndex:
    """The columns of one graph in lower case; made once per graph, on the first search."""

    def __init__(self, table: GraphTable, more: Mapping[int, str] | None = None) -> None:
        """Index a graph. ``more`` are words of single rows that no column holds, such as the reason of a break."""
        both = {name: f"{name} {short_dtype(name)}".lower() for name in set(table.dtype)}
        self._columns: dict[str, list[str]] = {
            "name": [text.lower() for text in table.op_id],
            "op": [text.lower() for text in table.op],
            "module": [text.lower() for text in table.module],
            "shape": [text.lower() for text in table.shape],
            "dtype": [both[name] for name in table.dtype],
            "device": [text.lower() for text in table.device],
        }
        self._all = ["\t".join(texts) for texts in zip(*self._columns.values(), strict=True)]
        for row, words in (more or {}).items():
            self._all[row] += f"\t{words.lower()}"

    def find(self, query: str) -> list[int]:
        """Rows that match, in order; none for an empty query.

        Raises:
            re.error: If a regular expression is not one.
        """
        query = query.strip()
        if not query:
            return []
        if len(query) > 1 and query.startswith("/"):
            pattern = re.compile(query[1:].removesuffix("/"), re.IGNORECASE)
            return self._find_pattern(pattern)
        rows: list[int] | None = None
        for word in query.lower().split():
            column, colon, rest = word.partition(":")
            named = bool(colon) and column in COLUMNS
            texts, wanted = (self._columns[column], rest) if named else (self._all, word)
            if column == "shape" and named:
                wanted = wanted.replace("×", "x")
            if rows is None:
                rows = [row for row, text in enumerate(texts) if wanted in text]
            else:
                rows = [row for row in rows if wanted in texts[row]]
        return rows or []

    def _find_pattern(self, pattern: re.Pattern[str]) -> list[int]:
        """Rows with a column that contains the pattern; each different text is looked at once."""
        found: set[int] = set()
        for texts in self._columns.values():
            hits = {text for text in set(texts) if pattern.search(text)}
            if hits:
                found.update(row for row, text in enumerate(texts) if text in hits)
        return sorted(found)
