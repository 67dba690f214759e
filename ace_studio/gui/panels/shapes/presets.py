"""Rows that the table proposes: usual sizes, and sizes that prove a dimension. No widgets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ace_studio.gui.panels.shapes.rows import Row
from ace_studio.gui.style import tr
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, InputFinding, TensorSpec

_PICTURE_DIMS = 4
_FEW_SIZES = 2
"""A dimension that ran at no more sizes than this may still break at the next one."""
_NEXT_SIZES = (5, 3, 7, 11)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Usual sizes of some dimensions."""

    text: str
    sizes: tuple[int, ...]
    dims: Callable[[TensorSpec], range]
    """The dimensions of an input that have these sizes; empty if it has none."""


def _batch(spec: TensorSpec) -> range:
    return range(min(1, len(spec.shape)))


def _sequence(spec: TensorSpec) -> range:
    return range(1, 2) if len(spec.shape) in (2, 3) else range(0)


def _sides(spec: TensorSpec) -> range:
    return range(2, 4) if len(spec.shape) == _PICTURE_DIMS else range(0)


PRESETS = (
    Preset(text=tr("Batch 1, 8, 32"), sizes=(1, 8, 32), dims=_batch),
    Preset(text=tr("Sequence 16, 128, 512"), sizes=(16, 128, 512), dims=_sequence),
    Preset(text=tr("Images 224, 320, 640"), sizes=(224, 320, 640), dims=_sides),
)


def fits(preset: Preset, row: Row) -> bool:
    """Whether some input of a row has a dimension of this kind."""
    return any(preset.dims(spec) for spec in row.values())


def preset_rows(rows: Sequence[Row], like: Row, preset: Preset) -> tuple[Row, ...]:
    """The rows, and one like ``like`` for each of the sizes that is not there yet.

    Only inputs whose size there is that of the first such input change: other sizes are something else.
    """
    own = next(spec.shape[dim] for spec in like.values() for dim in preset.dims(spec))
    result = list(rows)
    for size in preset.sizes:
        row = {name: _resized(spec, preset.dims(spec), own, size) for name, spec in like.items()}
        if row not in result:
            result.append(row)
    return tuple(result)


def _resized(spec: TensorSpec, dims: Sequence[int], own: int, size: int) -> TensorSpec:
    shape = tuple(size if dim in dims and old == own else old for dim, old in enumerate(spec.shape))
    return replace(spec, shape=shape)


@dataclass(frozen=True, kw_only=True)
class ProofRow:
    """A row that would show whether a dimension may vary."""

    why: str
    size: int
    row: Row


def missing_proof(
    rows: Sequence[Row], findings: Sequence[InputFinding], dims: Mapping[str, DimChoice]
) -> ProofRow | None:
    """The row that would prove the first dimension that is not proven; None if all are, or nothing was traced."""
    for finding in findings:
        for dim in finding.dims:
            name = f"{finding.name}.{dim.index}"
            specs = [row[finding.name] for row in rows if finding.name in row]
            seen = {spec.shape[dim.index] for spec in specs if dim.index < len(spec.shape)}
            seen |= {*dim.verified_sizes}
            size = next((one for one in _NEXT_SIZES if one not in seen and _is_within(one, dim)), None)
            why = "" if dims.get(name) is DimChoice.STATIC else _doubt(name, dim, seen)
            if why and specs and size is not None:
                return ProofRow(why=why, size=size, row=_row_with(rows[-1], findings, dim, finding, size))
    return None


def _is_within(size: int, dim: DimFinding) -> bool:
    is_free = dim.verdict is not DimVerdict.DYNAMIC
    return is_free or ((dim.min or 0) <= size and (dim.max is None or size <= dim.max))


def _doubt(name: str, dim: DimFinding, seen: set[int]) -> str:
    """Why a dimension may still break; empty if it is proven, or plainly one size."""
    if dim.verdict is DimVerdict.UNKNOWN and seen == {1}:
        return tr("{name} was only ever 1", name=name)
    if dim.verdict is DimVerdict.STATIC and dim.index == 0 and not dim.is_held and seen == {dim.size}:
        return tr("{name} is {size} in every example", name=name, size=dim.size)
    if dim.verdict is DimVerdict.DYNAMIC and len(seen) <= _FEW_SIZES:
        return tr("{name} is only proven at {names}", name=name, names=" and ".join(map(str, sorted(seen))))
    return ""


def _row_with(row: Row, findings: Sequence[InputFinding], dim: DimFinding, owner: InputFinding, size: int) -> Row:
    """A row with another size there, and in every dimension that goes with it."""
    result = dict(row)
    for finding in findings:
        spec = result.get(finding.name)
        for other in finding.dims if spec is not None else ():
            is_same = finding is owner and other is dim
            is_tied = dim.symbol is not None and other.symbol == dim.symbol
            is_alike = dim.symbol is None and (other.index, other.size, other.verdict) == (
                dim.index, dim.size, dim.verdict,
            )  # fmt: skip
            if spec is not None and (is_same or is_tied or is_alike) and other.index < len(spec.shape):
                spec = replace(
                    spec, shape=tuple(size if at == other.index else old for at, old in enumerate(spec.shape))
                )
                result[finding.name] = spec
    return result
