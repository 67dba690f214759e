"""The search for ops: one grammar for the field above the graph and for the filter of the op table.

A query is words, all of which must be found, in any case: ``conv 1x64``. A word may name a column: ``op:conv``,
``name:``, ``module:``, ``shape:``, ``dtype:``, ``device:``, ``break:``. ``/.../`` is a regular expression that one of
the columns must contain. A figure is compared with a number: ``time>1%``, ``time>0.1ms``, ``flops>=1M``, ``error<20``.
``precision:int8`` looks at the precision that an op has, or is planned to have.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtCore import QStringListModel
from PySide6.QtWidgets import QCompleter

from ace_studio.gui.graph_layout.sizes import short_dtype
from ace_studio.gui.graph_view.partial import seams_of
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.small import FilterField
from ace_studio.gui.widgets.table_model import Mask, Texts, any_having
from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import GraphBreak

COLUMNS = ("name", "op", "module", "shape", "dtype", "device", "break", "precision")
FIGURES = ("time", "flops", "weights", "output", "error", "sensitivity")
ValuesOf = Callable[[str], Sequence[object]]
"""Name of a figure, or ``precision`` -> [rows] its values, None where nothing is known; empty if none is known."""
_COMPARISON = re.compile(rf"({'|'.join(FIGURES)})([<>]=?)(\d+\.?\d*|\.\d+)([a-zµ%]*)")
_SIGNS = {">": np.greater, "<": np.less, ">=": np.greater_equal, "<=": np.less_equal}
_UNITS = {"": 1.0, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "db": 1.0} | {
    f"{prefix}{unit}": scale for prefix, scale in (("k", 1e3), ("m", 1e6), ("g", 1e9)) for unit in ("", "b")
}
"""Milliseconds for times, bytes for sizes; ``%`` is a share of the sum over all ops."""


class SearchIndex:
    """The columns of one graph, and the words of its breaks."""

    def __init__(self, table: GraphTable, breaks: Sequence[GraphBreak]) -> None:
        self._count = len(table)
        words = [""] * self._count
        for row, seam in seams_of(table, breaks).items():
            words[row] = f"break {seam.about.reason} {seam.place}"
        texts = [Texts(values) for values in (table.op_id, table.op, table.module, table.shape)]
        dtypes = Texts(table.dtype, lambda name: f"{name} {short_dtype(name)}")
        self.columns = dict(zip(COLUMNS[:-1], (*texts, dtypes, Texts(table.device), Texts(words)), strict=True))

    def find(self, query: str, values: ValuesOf, texts: Sequence[Texts] = ()) -> tuple[Mask, str]:
        """[rows] Which ops match, all of them for an empty query; and what is wrong with the query.

        Args:
            query: As the module says.
            values: Figures of the ops, and their precision.
            texts: Where words without a column and patterns are looked for; by default in the columns of the graph.
        """
        texts = texts or tuple(self.columns.values())
        words, pattern = _parts(query)
        try:
            found = [any_having(texts, re.compile(pattern, re.IGNORECASE))] if pattern is not None else []
            found += [self._of_word(word, values, texts) for word in words]
        except re.error as error:
            return np.zeros(self._count, dtype=bool), tr("not a pattern: {why}", why=error.msg)
        except KeyError as error:
            return np.zeros(self._count, dtype=bool), tr("{unit} is no unit", unit=error.args[0])
        return np.all([np.ones(self._count, dtype=bool), *found], axis=0), ""

    def _of_word(self, word: str, values: ValuesOf, texts: Sequence[Texts]) -> Mask:
        """Where one word holds. Raises: KeyError if it has an unknown unit."""
        comparison = _COMPARISON.fullmatch(word)
        if comparison is not None:
            name, sign, number, unit = comparison.groups()
            known = values(name) or [None] * self._count
            figures = np.array([one if isinstance(one, int | float) else np.nan for one in known])
            bound = float(number) * (np.nansum(figures) / 100 if unit == "%" else _UNITS[unit])
            return _SIGNS[sign](figures, bound)
        # As it stands too: a reason may be the rule ``module:*.conv1``.
        found = any_having(texts, word)
        name, colon, wanted = word.partition(":")
        if colon and name in COLUMNS:
            column = self.columns.get(name) or Texts(values(name) or [""] * self._count)
            found |= column.having(wanted.replace("×", "x") if name == "shape" else wanted)
        return found


@kept_by_identity
def search_index(table: GraphTable, breaks: Sequence[GraphBreak]) -> SearchIndex:
    """What searches a graph, made once for graph view and op table."""
    return SearchIndex(table, breaks)


def _parts(query: str) -> tuple[list[str], str | None]:
    """The words of a query, and its pattern: from a slash before a word to the last one after a word, or to the end."""
    words, _, rest = f" {query.strip()}".partition(" /")
    if not rest:
        return query.lower().split(), None
    pattern, closing, more = rest.rpartition("/")
    if not closing or more[:1].strip():
        return words.lower().split(), rest
    return f"{words}{more}".lower().split(), pattern


class SearchField(FilterField):
    """A field for a query, which explains the grammar and completes the names of columns and figures."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(name, hint)
        self.setToolTip(
            tr(
                "Words are searched in name, operator, module, shape, type and device; in a table in all cells.\n"
                "op:conv   name:add   module:layer1   shape:1x64   dtype:float16   device:cuda   /regular.*pattern$/\n"
                "time>1%   time>0.1ms   flops>1M   weights>1MB   error<20   sensitivity<30   precision:int8"
            )
        )
        self._offers = QStringListModel(self)
        self.setCompleter(QCompleter(self._offers, self))
        self.textEdited.connect(self._offer)

    def _offer(self, text: str) -> None:
        """Complete the last word."""
        before, space, word = text.rpartition(" ")
        names = (*(f"{name}:" for name in COLUMNS), *(f"{name}>" for name in FIGURES))
        self._offers.setStringList([f"{before}{space}{name}" for name in names if word])
