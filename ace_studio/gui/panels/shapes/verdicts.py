"""The verdict on a dimension in a few words, for the chip below its column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ace_studio.gui.panels.shapes.rows import ColumnKind, Row, ShapeColumn
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, InputFinding

ONLY_ONE = "only ever 1: try another size"
_CYCLE = {None: DimChoice.DYNAMIC, DimChoice.AUTO: DimChoice.DYNAMIC, DimChoice.DYNAMIC: DimChoice.STATIC}


@dataclass(frozen=True, kw_only=True)
class Chip:
    """The text and look of a chip. ``mood`` is dynamic, static, held, unknown or asked (nothing traced yet)."""

    text: str
    mood: str
    tip: str
    is_free: bool = False
    """Whether the size may vary, or will."""


def next_choice(choice: DimChoice | None) -> DimChoice:
    """Auto, dynamic, static, auto again."""
    return _CYCLE.get(choice, DimChoice.AUTO)


def chip_of(
    column: ShapeColumn, rows: Sequence[Row], findings: Sequence[InputFinding], *, dims: Mapping[str, DimChoice]
) -> Chip | None:
    """The chip of a column: the verdict of the trace, or what the examples suggest."""
    if column.kind is not ColumnKind.DIM:
        return None
    choice = dims.get(column.name, DimChoice.AUTO)
    found = find_dim(column, findings)
    if found is None:
        return _expected(column, rows, choice)
    text, mood = _verdict(found)
    tip = "\n".join(part for part in (found.reason, _sizes(found), f"You asked for: {choice}") if part)
    is_as_asked = choice in (DimChoice.AUTO, found.verdict) or (choice is DimChoice.STATIC and found.is_held)
    asked = "" if is_as_asked else f" ({choice} asked)"
    return Chip(text=text + asked, mood=mood, tip=tip, is_free=found.verdict is DimVerdict.DYNAMIC)


def find_dim(column: ShapeColumn, findings: Sequence[InputFinding]) -> DimFinding | None:
    """The finding on the dimension of a column."""
    dims = next((finding.dims for finding in findings if finding.name == column.input), ())
    return next((dim for dim in dims if dim.index == column.index), None)


def sizes_text(found: DimFinding | None) -> str:
    """The sizes at which the graph was run and matched eager."""
    return ", ".join(map(str, found.verified_sizes)) if found else ""


def _verdict(found: DimFinding) -> tuple[str, str]:
    if found.is_held:
        return f"held at {found.size}", "held"
    if found.verdict is DimVerdict.STATIC:
        return f"static {found.size}", "static"
    if found.verdict is DimVerdict.UNKNOWN:
        return ONLY_ONE, "unknown"
    if found.equal_to:
        return f"equal to {found.equal_to}", "dynamic"
    low = "0" if found.min is None else str(found.min)
    bounds = f"≥ {low}" if found.max is None else f"in [{low}, {found.max}]"
    return f"dynamic {found.symbol or ''} {bounds}".replace("  ", " "), "dynamic"


def _sizes(found: DimFinding) -> str:
    sizes = sizes_text(found)
    return f"Run at {sizes} and equal to eager" if sizes else ""


def _expected(column: ShapeColumn, rows: Sequence[Row], choice: DimChoice) -> Chip:
    if choice is not DimChoice.AUTO:
        return Chip(
            text=f"{choice} (asked)",
            mood="asked",
            tip="You asked for it; the trace shows whether it is possible",
            is_free=choice is DimChoice.DYNAMIC,
        )
    sizes = {
        row[column.input].shape[column.index]
        for row in rows
        if column.input in row and column.index < len(row[column.input].shape)
    }
    if len(sizes) > 1:
        return Chip(text="will be dynamic", mood="asked", tip="The examples differ here", is_free=True)
    if sizes == {1}:
        return Chip(text=ONLY_ONE, mood="unknown", tip="Another size in another row decides")
    return Chip(text="will be static", mood="asked", tip="All examples agree here; ask for dynamic if it may vary")
