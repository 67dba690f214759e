"""The verdict on a dimension in a few words, for the chip below its column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ace_studio.gui.panels.shapes.rows import ColumnKind, Row, ShapeColumn
from ace_studio.gui.style import told, tr
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, InputFinding

ONLY_ONE = tr("only ever 1")
_CYCLE = {None: DimChoice.DYNAMIC, DimChoice.AUTO: DimChoice.DYNAMIC, DimChoice.DYNAMIC: DimChoice.STATIC}


@dataclass(frozen=True, kw_only=True)
class Chip:
    """The text and look of a chip.

    ``mood`` is dynamic, static, held, plain, asked (nothing traced yet) or unknown, in the colour of warnings.
    """

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
    tip = "\n".join(
        part for part in (found.reason, _sizes(found), tr("You asked for: {choice}", choice=choice)) if part
    )
    is_as_asked = choice in (DimChoice.AUTO, found.verdict) or (choice is DimChoice.STATIC and found.is_held)
    asked = "" if is_as_asked else tr(" ({choice} asked)", choice=tr(choice))
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
        return tr("held at {size}", size=found.size), "held"
    if found.verdict is DimVerdict.STATIC:
        return tr("static {size}", size=found.size), "static"
    if found.verdict is DimVerdict.UNKNOWN:
        return ONLY_ONE, "plain"  # no warning: a layer may fix it, such as that of a grey picture
    if found.equal_to:
        return tr("equal to {equal_to}", equal_to=found.equal_to), "dynamic"
    low = "0" if found.min is None else str(found.min)
    bounds = f"≥ {low}" if found.max is None else tr("in [{low}, {high}]", low=low, high=found.max)
    return tr("dynamic {symbol} {bounds}", symbol=found.symbol or "", bounds=bounds).replace("  ", " "), "dynamic"


def _sizes(found: DimFinding) -> str:
    sizes = sizes_text(found)
    return tr("Run at {sizes} and equal to eager", sizes=sizes) if sizes else ""


def _expected(column: ShapeColumn, rows: Sequence[Row], choice: DimChoice) -> Chip:
    if choice is not DimChoice.AUTO:
        return Chip(
            text=tr("{choice} (asked)", choice=choice),
            mood="asked",
            tip=tr("You asked for it; the trace shows whether it is possible"),
            is_free=choice is DimChoice.DYNAMIC,
        )
    sizes = {
        row[column.input].shape[column.index]
        for row in rows
        if column.input in row and column.index < len(row[column.input].shape)
    }
    if len(sizes) > 1:
        return Chip(text=tr("will be dynamic"), mood="asked", tip=tr("The examples differ here"), is_free=True)
    if sizes == {1}:
        return Chip(text=ONLY_ONE, mood="asked", tip=tr("Another size in another row decides"))
    return Chip(
        text=tr("will be static"), mood="asked", tip=tr("All examples agree here; ask for dynamic if it may vary")
    )


def size_faults(row: Row, findings: Sequence[InputFinding]) -> dict[str, str]:
    """Dimension (``x.0``) -> the guard of the graph that its size in this row breaks."""
    sizes = {f"{name}.{index}": size for name, spec in row.items() for index, size in enumerate(spec.shape)}
    faults = {}
    for finding in findings:
        for dim in finding.dims:
            name = f"{finding.name}.{dim.index}"
            if name in sizes:
                fault = _fault(sizes[name], dim, sizes)
                if fault:
                    faults[name] = fault
    return faults


def _fault(size: int, dim: DimFinding, sizes: Mapping[str, int]) -> str:
    if dim.verdict is not DimVerdict.DYNAMIC:
        return (
            ""
            if size == dim.size
            else tr("the graph is fixed to size {size} here: trace again with this row", size=dim.size)
        )
    if dim.equal_to and dim.equal_to in sizes and sizes[dim.equal_to] != size:
        return tr(
            "the graph needs the same size as {equal_to}, which is {sizes} here",
            equal_to=dim.equal_to,
            sizes=sizes[dim.equal_to],
        )
    low, high = dim.min, dim.max
    if low is not None and size < low:
        return tr("the graph allows only {value} ≥ {low}", value=dim.symbol or "sizes", low=low)
    if high is not None and size > high:
        return tr("the graph allows only {value} ≤ {high}", value=dim.symbol or "sizes", high=high)
    return ""


def refused_rows(attempts: Sequence[CaptureAttempt]) -> dict[int, str]:
    """Index of an example -> why the graph of a capture method refused it. Nothing if some method took them all."""
    if any(attempt.status is AttemptStatus.OK for attempt in attempts):
        return {}
    found: dict[int, str] = {}
    for attempt in attempts:
        if attempt.refused_example and attempt.error is not None:
            words = ". ".join(told(part) for part in (attempt.error.what, attempt.error.why) if part)
            found.setdefault(attempt.refused_example - 1, f"{attempt.name}: {words}")
    return found
