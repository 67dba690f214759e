"""Rows that the captured graph does not accept: which size violates which guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ace_studio.gui.panels.shapes.rows import Row
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding


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
        return "" if size == dim.size else f"the graph is fixed to size {dim.size} here: trace again with this row"
    if dim.equal_to and dim.equal_to in sizes and sizes[dim.equal_to] != size:
        return f"the graph needs the same size as {dim.equal_to}, which is {sizes[dim.equal_to]} here"
    low, high = dim.min, dim.max
    if low is not None and size < low:
        return f"the graph allows only {dim.symbol or 'sizes'} ≥ {low}"
    if high is not None and size > high:
        return f"the graph allows only {dim.symbol or 'sizes'} ≤ {high}"
    return ""


def refused_rows(attempts: Sequence[CaptureAttempt]) -> dict[int, str]:
    """Index of an example -> why the graph of a capture method refused it. Nothing if some method took them all."""
    if any(attempt.status is AttemptStatus.OK for attempt in attempts):
        return {}
    found: dict[int, str] = {}
    for attempt in attempts:
        if attempt.refused_example and attempt.error is not None:
            words = ". ".join(part for part in (attempt.error.what, attempt.error.why) if part)
            found.setdefault(attempt.refused_example - 1, f"{attempt.name}: {words}")
    return found
