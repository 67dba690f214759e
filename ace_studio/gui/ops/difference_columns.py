"""The columns of the op table while A and B are compared: what each has, and the difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.widgets.table_model import ByKey, Column, Computed
from ace_studio.gui.words.formatting import NOTHING, TimeUnit, percent_text, shape_text
from ace_studio.records.results import OpReport
from ace_studio.session.comparison.graphs import OpChange
from ace_studio.session.comparison.sides import NAMES, ComparedOps, PinnedPair

DIFFERS = "differs"
"""In the cell of every op that differs, for the filter."""


def difference_columns(comparison: PinnedPair, ops: ComparedOps, colours: Colours) -> list[Column]:
    """One row per row of the merged graph; without a graph there is none."""
    merged = comparison.merged
    if merged is None:
        return []
    table, count = merged.table, len(merged.table)
    graphs = [side.graph or other.graph for side, other in zip(comparison.sides, comparison.sides[::-1], strict=True)]

    def shapes(side: int) -> Computed:
        def shape(row: int) -> str:
            at, graph = merged.rows[row][side], graphs[side]
            return "" if at < 0 or graph is None else f"{shape_text(graph.shape[at])}  {graph.dtype[at]}".strip()

        return Computed(count, shape)

    def read(side: int, field: str) -> Computed:
        def value(row: int) -> float | None:
            found: OpReport | None = ops.reports[side].get(table.op_id[row])
            return None if found is None else getattr(found, field)

        return Computed(count, value)

    def swatches(values: ByKey) -> Callable[[int], str]:
        return lambda row: colours.precision.get(values[row], "")

    def words(row: int) -> str:
        change = ops.changes[row]
        return "" if change is OpChange.SAME else f"{DIFFERS}: {change}"

    found = [
        Column(title="#", values=range(count), is_number=True, width=48, tip="Order of execution"),
        Column(title="difference", values=Computed(count, words), width=150, tip="What became of the op from A to B",
               colour=lambda _: colours.warn),
        Column(title="op id", values=table.op_id, width=120, tip="Name of the op; of one that both have, in B"),
        Column(title="op", values=table.op, width=130),
        Column(title="module", values=table.module, width=120),
    ]  # fmt: skip
    for side, name in enumerate(NAMES):
        values = ByKey(table.op_id, ops.precisions[side])
        found.append(Column(title=f"{name}: precision", values=values, width=112, swatch=swatches(values),
                            tip="As the runtime reports it; as planned where a side was not run"))  # fmt: skip
    for side, name in enumerate(NAMES):
        found.append(Column(title=f"{name}: result", values=shapes(side), width=150))
    times, errors = [read(side, "latency_ms") for side in (0, 1)], [read(side, "error_db") for side in (0, 1)]
    unit = TimeUnit.of(time for side in times for time in side)
    noise = f"Grey: within the noise of the runs, {percent_text(ops.noise)}"
    found += _pair(f"latency, {unit.name}", times, unit.text, colours, tip=noise, least=ops.noise)
    found += _pair("error, dB", errors, lambda value: NOTHING if value is None else f"{value:.1f}", colours,
                   tip="Fidelity of its value, with all earlier errors")  # fmt: skip
    return found


def _pair(
    title: str,
    values: list[Computed],
    text: Callable[[float | None], str],
    colours: Colours,
    *,
    tip: str,
    least: float = 0.0,
) -> list[Column]:
    """A, B and B minus A; grey if that is less than the fraction ``least`` of A."""
    first, second = values

    def difference(row: int) -> float | None:
        one, other = first[row], second[row]
        return None if one is None or other is None else other - one

    def signed(value: Any) -> str:
        return text(value) if value is None or value < 0 else f"+{text(value)}"

    def colour(row: int) -> str:
        found = difference(row)
        return colours.text_dim if found is not None and abs(found) <= least * (first[row] or 0.0) else ""

    return [
        Column(title=f"A: {title}", values=first, text=text, is_number=True, width=104),
        Column(title="B", values=second, text=text, is_number=True, width=70),
        Column(title="B - A", values=Computed(len(first), difference), text=signed, is_number=True, width=80,
               colour=colour, tip=tip),
    ]  # fmt: skip
