"""Heat maps of a sweep: latency by batch and shape. Nothing is drawn here, and nothing that takes long is imported."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ace_studio.records.sweeps import Axis, SweepRow


@dataclass(frozen=True)
class HeatCell:
    """The fastest row of one batch and shape."""

    row: SweepRow
    share: float
    """In 0..1: of the time of one sample, from the least in the map to the most."""


@dataclass(frozen=True)
class HeatMap:
    """Latency by batch and shape, of one recipe on one machine."""

    title: str
    shapes: list[str]
    rows: list[tuple[int, list[HeatCell | None]]]


def heat_maps(rows: Sequence[SweepRow]) -> list[HeatMap]:
    """One map per machine and recipe whose rows differ in batch or shape; a cell is its fastest row.

    Rows without a latency, and those that miss their goal, are in none.
    """
    groups: dict[tuple[str, str], dict[tuple[int, str], SweepRow]] = {}
    for row in rows:
        place = batch_and_shape(str(row.axes.get(Axis.SHAPE, "")))
        if place is None or row.latency_ms is None or row.goal_met is False:
            continue
        cells = groups.setdefault((row.host, row.recipe), {})
        if place not in cells or (row.latency_ms or math.inf) < (cells[place].latency_ms or math.inf):
            cells[place] = row
    return [_heat_map(f"{recipe} on {host}", cells) for (host, recipe), cells in groups.items() if len(cells) > 1]


def _heat_map(title: str, cells: Mapping[tuple[int, str], SweepRow]) -> HeatMap:
    batches, shapes = sorted({batch for batch, _ in cells}), sorted({shape for _, shape in cells}, key=_sizes)
    each = {place: (row.latency_ms or 0.0) / place[0] for place, row in cells.items()}
    least, span = min(each.values()), max(each.values()) - min(each.values())

    def cell(place: tuple[int, str]) -> HeatCell | None:
        if place not in cells:
            return None
        share = (each[place] - least) / span if span > 0 else 0.0
        return HeatCell(cells[place], share)

    return HeatMap(title, shapes, [(batch, [cell((batch, shape)) for shape in shapes]) for batch in batches])


def _sizes(shape: str) -> list[int]:
    return [int(size) for size in shape.split("x") if size.isdecimal()]


def batch_and_shape(word: str) -> tuple[int, str] | None:
    """``(8, "3x32x32")`` for ``x=8x3x32x32``: the first size of the first input, and the others; None without one."""
    first = word.strip('[]"').split('"')[0]
    batch, _, rest = first.partition("=")[2].partition(":")[0].partition("x")
    return (int(batch), rest) if batch.isdecimal() and int(batch) > 0 else None
