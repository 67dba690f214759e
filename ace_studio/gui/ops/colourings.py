"""The colourings of the graph: one row per property, with a letter for each colour."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_view import Colouring
from ace_studio.gui.graph_view.colours import family_colouring
from ace_studio.gui.ops.facts import Fate, OpFacts, texts_by_row
from ace_studio.gui.style import Colours, tr
from ace_studio.records.graph import GraphTable
from ace_studio.session.comparison.graphs import OpChange

LETTERS = {
    "fp32": "32", "fp16": "16", "bf16": "B", "int8-static": "8", "int8-dynamic": "8d", "int8-weight": "8w",
    "int4-weight": "4w", "fp8": "F8", "int8": "8", "fused": "+", "folded": "0", "unknown": "?",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ColourChoice:
    """One property that the ops can be coloured by."""

    id: str
    text: str
    colouring: Callable[[GraphTable, OpFacts, Colours], Colouring | None]
    """None if nothing is known yet; the graph then shows the kinds of ops."""

    def shown(self, table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
        """The colouring; where nothing is known yet, the kinds of ops under a legend that says so."""
        found = self.colouring(table, facts, colours)
        if found is None and self.id != "kind":
            return replace(
                family_colouring(table, colours), label=tr("kind of op: {text} not known yet", text=self.text)
            )
        return found


def _by_label(title: str, texts: Sequence[str], colours: Colours) -> Colouring | None:
    """Colour by a text per row; rows without one keep the colour of a block."""
    names = set(texts) - {""}
    if not names:
        return None
    chosen = {name: colours.precision[name] for name in names if colours.precision.get(name)}
    return Colouring.from_texts(title, texts, colours=chosen or colours.families, letters=LETTERS)


def _by_number(
    title: str, numbers: dict[str, float] | npt.NDArray[np.float64], unit: str, colours: Colours
) -> Colouring | None:
    if not (numbers.any() if isinstance(numbers, np.ndarray) else any(numbers.values())):
        return None
    return Colouring.from_numbers(title, numbers, unit=unit, colours=colours.scale)


def _planned(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    return _by_label(tr("planned precision"), texts_by_row(table, facts.planned), colours)


def _actual(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    target = facts.run.target if facts.run else ""
    labels = {op_id: report.actual for op_id, report in facts.reports.items()}
    return _by_label(tr("actual precision, {target}", target=target), texts_by_row(table, labels), colours)


def _device(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    labels = {op_id: report.device for op_id, report in facts.reports.items() if report.device}
    return _by_label(tr("device"), texts_by_row(table, labels) if labels else table.device, colours)


def _latency(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    del table
    numbers = {op_id: report.latency_ms for op_id, report in facts.reports.items() if report.latency_ms is not None}
    return _by_number(tr("latency"), numbers, "ms", colours)


def _flops(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    del facts
    return _by_number("FLOPs", np.array(table.flops, dtype=np.float64) / 1e6, "M", colours)


def _weights(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    del facts
    return _by_number(tr("weights"), np.array(table.weight_bytes, dtype=np.float64) / 1e3, "kB", colours)


_DB_LIMITS = (10.0, 20.0, 30.0, 40.0, 60.0)
"""dB limits between the categories of fidelity, the worst first."""
FATE_LETTERS = {
    Fate.AS_PLANNED: "=", Fate.OTHERWISE: "≠", Fate.FUSED: "+", Fate.FOLDED: "0", Fate.GONE: "×", Fate.UNKNOWN: "?",
}  # fmt: skip


def by_decibels(title: str, values: Mapping[str, float], colours: Colours) -> Colouring | None:
    """Colour by fidelity, in the same categories for every model; the worst has the strongest colour."""
    if not values:
        return None
    scale = colours.scale[::-1]
    limits = [-math.inf, *_DB_LIMITS, math.inf]
    names = [
        tr("below {limit:.0f} dB", limit=_DB_LIMITS[0]),
        *(f"{low:.0f} - {high:.0f} dB" for low, high in pairwise(_DB_LIMITS)),
        tr("above {limit:.0f} dB", limit=_DB_LIMITS[-1]),
    ]
    place = {op_id: next(at for at, high in enumerate(limits[1:]) if value < high or math.isinf(high))
             for op_id, value in values.items()}  # fmt: skip
    letters = tuple("!" * max(0, 2 - at) or str(at - 1) for at in range(len(names)))
    return Colouring(label=title, categories=tuple(names), colours=scale, letters=letters, value_of=place)


def _sensitivity(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    del table
    return by_decibels(tr("sensitivity"), facts.sensitivity, colours)


def _error(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    del table
    values = {op_id: report.error_db for op_id, report in facts.reports.items() if report.error_db is not None}
    return by_decibels(
        tr("error along the graph, {value}", value=facts.run.target if facts.run else ""), values, colours
    )


def fate_colouring(facts: OpFacts, colours: Colours) -> Colouring | None:
    """Colour by the fate of every op in the selected run."""
    if not facts.fates:
        return None
    looks = {
        Fate.AS_PLANNED: colours.precision["int8-static"],
        Fate.OTHERWISE: colours.precision["int4-weight"],
        Fate.FUSED: colours.precision["bf16"],
        Fate.FOLDED: colours.precision["fp16"],
        Fate.GONE: colours.precision["folded"],
        Fate.UNKNOWN: colours.precision["unknown"],
    }
    labels = {op_id: str(one.fate) for op_id, one in facts.fates.items()}
    letters = {str(fate): letter for fate, letter in FATE_LETTERS.items()}
    chosen = {str(fate): colour for fate, colour in looks.items()}
    target = facts.run.target if facts.run else ""
    return Colouring.from_labels(tr("fate, {target}", target=target), labels, colours=chosen, letters=letters)


def _fate(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    del table
    return fate_colouring(facts, colours)


_CHANGE_LETTERS: dict[str, str] = {
    OpChange.SAME: "=", OpChange.PRECISION: "P", OpChange.FUSION: "+", OpChange.SHAPE: "S", OpChange.BOTH: "PS",
    OpChange.ONLY_FIRST: "A", OpChange.ONLY_SECOND: "B",
}  # fmt: skip
DIFFERENCE = "difference"
"""Id of the colouring by what differs between A and B."""


def change_colours(colours: Colours) -> dict[OpChange, str]:
    """What became of an op from A to B -> its colour in the graph and in the table of ops."""
    order = (OpChange.ONLY_FIRST, OpChange.PRECISION, OpChange.SHAPE, OpChange.BOTH, OpChange.ONLY_SECOND)
    found = {change: colours.families[at] for at, change in enumerate(order)}
    return found | {OpChange.FUSION: colours.precision["fused"], OpChange.SAME: colours.block}


def _difference(table: GraphTable, facts: OpFacts, colours: Colours) -> Colouring | None:
    if facts.compared is None:
        return None
    looks = {tr(change): colour for change, colour in change_colours(colours).items()}
    labels = {op_id: tr(change) for op_id, change in zip(table.op_id, facts.compared.changes, strict=True)}
    letters = {tr(change): letter for change, letter in _CHANGE_LETTERS.items()}
    return Colouring.from_labels(tr("from A to B"), labels, colours=looks, letters=letters)


COLOURINGS: tuple[ColourChoice, ...] = (
    ColourChoice(id="kind", text=tr("kind of op"), colouring=lambda *_: None),
    ColourChoice(id="planned", text=tr("planned precision"), colouring=_planned),
    ColourChoice(id="actual", text=tr("actual precision"), colouring=_actual),
    ColourChoice(id="fate", text=tr("fate"), colouring=_fate),
    ColourChoice(id="sensitivity", text=tr("sensitivity"), colouring=_sensitivity),
    ColourChoice(id="error", text=tr("error along the graph"), colouring=_error),
    ColourChoice(id="device", text=tr("device"), colouring=_device),
    ColourChoice(id="latency", text=tr("latency"), colouring=_latency),
    ColourChoice(id="flops", text=tr("FLOPs"), colouring=_flops),
    ColourChoice(id="weights", text=tr("weight bytes"), colouring=_weights),
    ColourChoice(id=DIFFERENCE, text=tr("difference of A and B"), colouring=_difference),
)
