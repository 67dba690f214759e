"""Rows of the shape table as data: columns, editing, pasting. No widgets."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from ace_studio.gui.style import tr
from ace_studio.records.spreadsheet import spreadsheet_rows
from ace_studio.records.tensors import InputFinding, TensorSpec, is_file_value, read_values

INPUT_DTYPES = ("float32", "int64", "bool", "float16", "bfloat16", "float64", "int32", "int16", "int8", "uint8")
PLAIN_KINDS = ("value", "none")
"""What an input may be instead of a tensor; the words of `VALUE_SOURCES`."""
VALUE_SOURCES = (
    ("random", tr("Standard normal for floats, 0 to 99 for integers, a fair coin for booleans; the same in every run")),
    ("random 0..9", tr("Uniform between two numbers, both included; write your own")),
    ("normal 0 1", tr("Normal with this mean and standard deviation; write your own")),
    ("zeros", tr("All zeros: for states and masks")),
    ("ones", tr("All ones: for attention masks that hide nothing")),
    ("constant 1", tr("This number everywhere; write your own")),
    ("range", tr("0, 1, 2, …: for positions")),
    (
        "calibration",
        tr("This input in the calibration data, the n-th example for the n-th row, at the size of the row"),
    ),
    ("value 1", tr("A plain Python value instead of a tensor: a number, True, False or a text in quotes")),
    ("none", tr("None instead of a tensor")),
)
"""Values of an input, and what they mean. The path of a file (.npy, .npz, .safetensors) works too."""
_SIZES = re.compile(r"\d+(\s*[x×,\s]\s*\d+)*", re.IGNORECASE)
_FILES = (".npy", ".npz", ".safetensors")
Row = dict[str, TensorSpec]


class ColumnKind(StrEnum):
    """What a column of the table holds."""

    DIM = "dim"
    """One size."""
    DTYPE = "dtype"
    """The element type."""
    VALUES = "values"
    """How the values are made."""
    FOLDED = "folded"
    """All inputs of a group, in one cell that is read only."""


@dataclass(frozen=True, kw_only=True)
class ShapeColumn:
    """One column: a dimension, the type or the values of one input."""

    input: str
    kind: ColumnKind
    index: int = 0
    """Of the dimension."""

    @property
    def name(self) -> str:
        """As the recipe names it: ``x.0``, ``x.dtype``."""
        return f"{self.input}.{self.index if self.kind is ColumnKind.DIM else self.kind.value}"

    @property
    def group(self) -> str:
        """The argument of forward that the input is, or is in: ``batch`` of ``batch.ids``."""
        return self.input.partition(".")[0]

    @property
    def title(self) -> str:
        """Title of the column."""
        return f"{self.input} · {self.index}" if self.kind is ColumnKind.DIM else f"{self.input} {self.kind.value}"

    @property
    def short_title(self) -> str:
        """Title of the column below that of its group."""
        return self.title.removeprefix(self.group).lstrip(" .·")


@dataclass(frozen=True, kw_only=True)
class InputSpec:
    """A new input."""

    name: str
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    values: str = "random"


def shape_columns(
    rows: Sequence[Row], findings: Sequence[InputFinding], *, folded: Collection[str] = ()
) -> tuple[ShapeColumn, ...]:
    """The columns for these examples, one for every folded group; where there are none, those of what the trace found.

    An input that can get a size has at least one column for it.
    """
    ranks: dict[str, int] = {}
    for row in rows:
        for name, spec in row.items():
            ranks[name] = max(ranks.get(name, 0), len(spec.shape))
    plain = {name for row in rows for name, spec in row.items() if is_plain(spec)}
    if not rows:
        ranks = {finding.name: len(finding.dims) for finding in findings}
    columns: list[ShapeColumn] = []
    for name, rank in sorted(ranks.items(), key=lambda pair: _first_of(ranks, pair[0])):
        if (group := name.partition(".")[0]) in folded:
            column = ShapeColumn(input=group, kind=ColumnKind.FOLDED)
            columns += [column] * (column not in columns)
            continue
        sizes = range(rank if name in plain or not rows else max(1, rank))
        columns += [ShapeColumn(input=name, kind=ColumnKind.DIM, index=index) for index in sizes]
        columns.append(ShapeColumn(input=name, kind=ColumnKind.DTYPE))
        if rows:
            columns.append(ShapeColumn(input=name, kind=ColumnKind.VALUES))
    return tuple(columns)


def _first_of(names: Iterable[str], name: str) -> int:
    """Place of the first input of the same group, so that groups stay together."""
    groups = [one.partition(".")[0] for one in names]
    return groups.index(name.partition(".")[0])


def is_plain(spec: TensorSpec) -> bool:
    """Whether an input is a Python value or None instead of a tensor."""
    try:
        return read_values(spec.values).is_plain
    except ValueError:
        return False


def spec_text(spec: TensorSpec) -> str:
    """``1x16 int64``, ``value 3``."""
    return spec.values if is_plain(spec) else f"{'x'.join(map(str, spec.shape)) or 'scalar'} {spec.dtype}"


def cell_text(row: Row, column: ShapeColumn) -> str:
    """The text of a cell; empty if the example has no such input or dimension."""
    if column.kind is ColumnKind.FOLDED:
        inner = {name: spec for name, spec in row.items() if name.partition(".")[0] == column.input}
        return ", ".join(f"{name.partition('.')[2]} {spec_text(spec)}".strip() for name, spec in inner.items())
    spec = row.get(column.input)
    if spec is None:
        return ""
    if column.kind is ColumnKind.DIM:
        return str(spec.shape[column.index]) if column.index < len(spec.shape) else ""
    if column.kind is ColumnKind.DTYPE:
        return "" if is_plain(spec) else spec.dtype
    return spec.values


def with_cell(row: Row, column: ShapeColumn, text: str) -> Row | None:
    """The row with one cell changed; None if the text is invalid there.

    A cleared size takes the last dimensions away; a size beyond the last one adds a dimension, and ``3x4`` several.
    """
    text = text.strip()
    spec = row.get(column.input, TensorSpec(shape=()))
    if column.kind is ColumnKind.VALUES:
        changed = replace(spec, values=text or "random")
        if _values_fault(changed.values):
            return None
        return {**row, column.input: replace(changed, shape=()) if is_plain(changed) else changed}
    if is_plain(spec):
        return None if text else row
    if column.kind is ColumnKind.DTYPE:
        return {**row, column.input: replace(spec, dtype=text)} if text in INPUT_DTYPES else None
    if not text:
        return {**row, column.input: replace(spec, shape=spec.shape[: column.index])}
    sizes = _sizes(text)
    if not sizes or column.kind is ColumnKind.FOLDED or column.index > len(spec.shape):
        return None
    rest = spec.shape[column.index + 1 :] if len(sizes) == 1 else ()
    return {**row, column.input: replace(spec, shape=(*spec.shape[: column.index], *sizes, *rest))}


def _sizes(text: str) -> tuple[int, ...] | None:
    """One size, or several as in ``3x4``."""
    return parse_shape(text) if _SIZES.fullmatch(text.strip()) else None


def _values_fault(text: str) -> str:
    try:
        read_values(text)
    except ValueError as error:
        return str(error)
    path = text.partition(":")[0]
    if not is_file_value(text) or "/" in text or path.endswith(_FILES):
        return ""
    return tr("'{text}' is neither a known source of values nor a file ({names})", text=text, names=", ".join(_FILES))


def cell_fault(row: Row, column: ShapeColumn, text: str) -> str:
    """Why a text is invalid in a cell; empty if it is not."""
    if with_cell(row, column, text) is not None:
        return ""
    if column.kind is ColumnKind.VALUES:
        return _values_fault(text.strip())
    if column.kind is ColumnKind.FOLDED:
        return tr("{name} is folded; unfold it to change it", name=column.input)
    if column.input in row and is_plain(row[column.input]):
        return tr("{name} is a Python value here; change where its values come from first", name=column.input)
    if column.kind is ColumnKind.DTYPE:
        return tr("'{text}' is no element type; choose one of {names}", text=text, names=", ".join(INPUT_DTYPES))
    if not _sizes(text):
        return tr("'{text}' is no size: write a whole number, or nothing to drop this dimension", text=text)
    name, before = column.input, column.index - 1
    return tr("{name} has no dimension {before} in this row yet; fill that in first", name=name, before=before)


def with_cells(rows: Sequence[Row], cells: Iterable[tuple[int, ShapeColumn]], text: str) -> tuple[Row, ...]:
    """The rows with the same text in several cells; cells in which it is invalid stay."""
    result = list(rows)
    for at, column in cells:
        if at < len(result):
            result[at] = with_cell(result[at], column, text) or result[at]
    return tuple(result)


def parse_shape(text: str) -> tuple[int, ...] | None:
    """``1x3x224``, ``1, 3, 224`` or ``(1 3 224)`` -> sizes; None if it is none of these. Empty is a scalar."""
    words = [word for word in re.split(r"[x×,\s()\[\]*]+", text.strip().lower()) if word]
    return tuple(map(int, words)) if all(word.isdecimal() and len(word) < 19 for word in words) else None


def add_input(rows: Sequence[Row], spec: InputSpec) -> tuple[Row, ...]:
    """The rows with one more input in each; one row if there was none. A name that is taken is replaced."""
    tensor = TensorSpec(shape=spec.shape, dtype=spec.dtype, values=spec.values)
    return tuple({**row, spec.name: tensor} for row in (rows or ({},)))


def remove_input(rows: Sequence[Row], name: str) -> tuple[Row, ...]:
    """The rows without an input; rows that are empty then go too."""
    left = ({key: spec for key, spec in row.items() if key != name} for row in rows)
    return tuple(row for row in left if row)


def with_rows(findings: Sequence[InputFinding], values: Mapping[str, str]) -> tuple[Row, ...]:
    """One row as it was traced; ``values``: input -> where its values come from, if they are not random."""
    row = {
        finding.name: TensorSpec(
            shape=tuple(dim.size for dim in finding.dims),
            dtype=finding.dtype,
            values=values.get(finding.name, "random"),
        )
        for finding in findings
    }
    return (row,) if row else ()


def paste(
    rows: Sequence[Row], text: str, columns: Sequence[ShapeColumn], *, at: tuple[int, int]
) -> tuple[tuple[Row, ...], str]:
    """The rows with a block of cells (tabs and line ends, as a spreadsheet copies it) put at (row, column).

    Lines beyond the last row add rows like the last one. If a cell is invalid, the rows come back as they were, with
    the reason.
    """
    lines = spreadsheet_rows(text)
    if not lines or not columns or not rows:
        return tuple(rows), tr("Nothing to paste: the clipboard has no text, or there is no example yet")
    if len(lines) > (most := 1000):  # a text that is no list of sizes must not keep the window busy
        return tuple(rows), tr("Not pasted: {count} lines are more than {most}", count=len(lines), most=most)
    top, left = at
    if max(map(len, lines)) > len(columns) - left:
        wide, room = max(map(len, lines)), len(columns) - left
        return tuple(rows), tr(
            "Not pasted: {wide} columns do not fit into the {room} from {title} on",
            wide=wide,
            room=room,
            title=columns[left].title,
        )
    result = list(rows)
    for offset, cells in enumerate(lines):
        place = min(top, len(rows)) + offset
        if place >= len(result):
            result.append(dict(result[-1]))
        for column, cell in zip(columns[left:], cells, strict=False):
            fault = cell_fault(result[place], column, cell)
            if fault:
                return tuple(rows), tr(
                    "Not pasted, nothing changed: {fault} (example {number}, {title})",
                    fault=fault,
                    number=place + 1,
                    title=column.title,
                )
            result[place] = with_cell(result[place], column, cell) or result[place]
    return tuple(result), ""
