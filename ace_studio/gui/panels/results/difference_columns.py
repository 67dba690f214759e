"""The columns of A beside B: figures with their change. A difference within the noise is grey and says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.widgets.table_model import Column
from ace_studio.gui.words.formatting import NOTHING, TimeUnit, bytes_text, decibel_text, metric_text, unclear_words
from ace_studio.session.comparison.figures import ComparedRow, Difference

_BETTER = {"latency": -1, "size": -1, "speed-up": 1}
"""Whether a ratio above 1 is better (1) or worse (-1); of other figures the window does not know."""


def figure_columns(rows: Sequence[ComparedRow], colours: Colours) -> list[Column]:
    """A row per target and precision: A, B and the change of every figure."""
    unit = TimeUnit.of(time for each in rows for time in (each.latency.first, each.latency.second))
    columns = [Column(title="run", values=[each.name for each in rows])]
    for title, read, text, change, tip in (
        (f"latency, {unit.name}", lambda each: each.latency, unit.text, _ratio,
         "Median. B over A, with the bootstrap interval of the ratio, widened by what the original changed"),
        ("speed-up", lambda each: each.speedup, lambda value: NOTHING if value is None else f"{value:.2f}×", _ratio,
         "B over A. Each is over the original in its own run, so that a slower machine matters less"),
        ("metric", lambda each: each.metric, metric_text, lambda found: _delta(found, ".4f"),
         "B minus A. The interval takes both intervals together"),
        ("SQNR", lambda each: each.sqnr, decibel_text, lambda found: _delta(found, ".1f"), "B minus A, in dB"),
        ("size", lambda each: each.size, bytes_text, _ratio, "B over A"),
    ):  # fmt: skip
        found = [read(each) for each in rows]
        columns += [
            Column(title=f"A: {title}", values=[one.first for one in found], text=text, is_number=True),
            Column(title="B", values=[one.second for one in found], text=text, is_number=True),
            Column(title="change", values=[change(one) for one in found], tip=tip, tips=_tips(found),
                   colour=_mood(found, colours, better=_BETTER.get(title.partition(",")[0], 0))),
        ]  # fmt: skip
    return columns


def _tips(found: Sequence[Difference]) -> Callable[[int], str]:
    def tip(at: int) -> str:
        one = found[at]
        if one.low is None or one.high is None:
            return "No interval is known" if one.change is not None else ""
        seen = "" if one.is_clear else "; within the noise"
        return f"95 %: {one.low:.3g} – {one.high:.3g}{seen}"

    return tip


def _mood(found: Sequence[Difference], colours: Colours, *, better: int) -> Callable[[int], str]:
    def colour(at: int) -> str:
        one = found[at]
        if one.change is None or not one.is_clear:
            return colours.text_dim
        if not better:
            return colours.text
        return colours.good if (one.change > 1) == (better > 0) else colours.bad

    return colour


def _ratio(found: Difference) -> str:
    if found.change is None:
        return NOTHING
    words = f"{found.change:.2f}×"
    interval = f"  {found.low:.2f} – {found.high:.2f}" if found.low is not None and found.high is not None else ""
    return f"{words}{interval}{'' if found.is_clear else f', {unclear_words(found)}'}"


def _delta(found: Difference, form: str) -> str:
    if found.change is None:
        return NOTHING
    return f"{found.change:+{form}}" if found.is_clear else unclear_words(found)
