"""Two graphs as one: rows are matched; ops that only one has stand in their places.

Rows of one kind of graph are matched by module path and operator. A graph of ONNX and one of torch are aligned.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from ace_studio.records.graph import GraphTable, plain_sizes
from ace_studio.records.results.runs import NOT_REPORTED, WITHIN_OTHERS

_Key = tuple[str, str]
_COLUMNS = (
    "kind", "op", "module", "shape", "dtype", "device", "line", "flops", "weight_bytes", "output_bytes",
    "attributes", "weights",
)  # fmt: skip


class OpChange(StrEnum):
    """What became of an op from A to B."""

    SAME = "same"
    PRECISION = "precision"
    FUSION = "fusion"
    """One side computes it by itself, the other within another op's kernel."""
    SHAPE = "shape"
    """Its result has another shape or type."""
    BOTH = "precision and shape"
    ONLY_FIRST = "only in A"
    ONLY_SECOND = "only in B"


class MergedGraph(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Every row of two graphs, matched ones once: as the second has them."""

    table: GraphTable
    graphs: tuple[GraphTable, GraphTable]
    rows: tuple[tuple[int, int], ...]
    """Row in the first and in the second graph; -1 where it has none."""
    first_ids: dict[str, str]
    """Op id in the first graph -> op id in `table`. Those of the second stay as they are."""

    def ids(self, op_ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The ids that these ops have in the first and in the second graph."""
        wanted = set(op_ids)
        rows = [pair for pair, op_id in zip(self.rows, self.table.op_id, strict=True) if op_id in wanted]
        return tuple(tuple(self.graphs[side].op_id[pair[side]] for pair in rows if pair[side] >= 0) for side in (0, 1))


def matched_rows(first: GraphTable, second: GraphTable) -> dict[int, int]:
    """Row of the first -> row of the second with the same module path and operator.

    Of several alike ops in a module those with the same id belong together, the others in their order. Where one graph
    is ONNX's and the other torch's, see `aligned_rows`.
    """
    if _is_onnx(first) != _is_onnx(second):
        from ace_studio.session.comparison.alignment import aligned_rows  # noqa: PLC0415 - numpy, which few need

        return aligned_rows(first, second)
    rows, others = _by_key(first), _by_key(second)
    found: dict[int, int] = {}
    for key, mine in rows.items():
        theirs = others.get(key, [])
        by_id = {second.op_id[row]: row for row in theirs} if len(mine) != len(theirs) else {}
        same = {row: by_id[first.op_id[row]] for row in mine if first.op_id[row] in by_id}
        taken = set(same.values())
        left, right = (row for row in mine if row not in same), (row for row in theirs if row not in taken)
        found |= same | dict(zip(left, right, strict=False))
    return found


def merged_graph(first: GraphTable, second: GraphTable) -> MergedGraph:
    """The rows of both in one order of execution.

    Where the two execute matched rows in another order, an edge of the first that would point back is left out.
    """
    if first == second:  # most often, and large tables take seconds otherwise
        rows = tuple((row, row) for row in range(len(second)))
        ids = dict(zip(second.op_id, second.op_id, strict=True))
        return MergedGraph(table=second, graphs=(first, second), rows=rows, first_ids=ids)
    pairs = list(_in_order(matched_rows(first, second), len(first), len(second)))
    place = ({one: at for at, (one, _) in enumerate(pairs) if one >= 0},
             {other: at for at, (_, other) in enumerate(pairs) if other >= 0})  # fmt: skip
    taken = set(second.op_id)
    op_ids = tuple(second.op_id[other] if other >= 0 else _free(first.op_id[one], taken) for one, other in pairs)
    edges = {
        (at[start], at[end]): None
        for at, graph in zip(place, (first, second), strict=True)
        for start, end in zip(graph.edge_source, graph.edge_target, strict=True)
        if at[start] < at[end]
    }
    files = tuple(dict.fromkeys((*second.files, *first.files)))
    types = dict(zip(first.module_paths, first.module_types, strict=True))
    types |= dict(zip(second.module_paths, second.module_types, strict=True))
    index = [[files.index(path) for path in graph.files] for graph in (first, second)]

    def file_of(side: int, row: int) -> int:
        found = (first, second)[side].file[row]
        return index[side][found] if 0 <= found < len(index[side]) else -1

    def column(name: str) -> tuple[Any, ...]:
        mine, theirs = getattr(first, name), getattr(second, name)
        if not theirs:
            return ()  # a table that came without
        return tuple(theirs[other] if other >= 0 else mine[one] if mine else "" for one, other in pairs)

    table = replace(
        second,
        op_id=op_ids,
        file=tuple(file_of(1, other) if other >= 0 else file_of(0, one) for one, other in pairs),
        piece=tuple(second.piece[other] if other >= 0 else -1 for _, other in pairs) if second.piece else (),
        edge_source=tuple(start for start, _ in edges),
        edge_target=tuple(end for _, end in edges),
        files=files,
        module_paths=tuple(types),
        module_types=tuple(types.values()),
        **{name: column(name) for name in _COLUMNS},
    )
    first_ids = {first.op_id[one]: op_ids[at] for at, (one, _) in enumerate(pairs) if one >= 0}
    return MergedGraph(table=table, graphs=(first, second), rows=tuple(pairs), first_ids=first_ids)


def op_changes(merged: MergedGraph, precisions: tuple[dict[str, str], dict[str, str]]) -> tuple[OpChange, ...]:
    """What became of each row of the merged graph.

    ``precisions``: op id there -> precision or fate (`OpReport.actual`), of A and of B. Where a side has neither plan
    nor run, and where the runtime does not report an op, none differs.
    """
    first, second = merged.graphs
    are_known = all(precisions)
    size = plain_sizes if _is_onnx(first) != _is_onnx(second) else str  # each names its symbols in its own way

    def change(op_id: str, one: int, other: int) -> OpChange:
        if one < 0 or other < 0:
            return OpChange.ONLY_SECOND if one < 0 else OpChange.ONLY_FIRST
        shapes = size(first.shape[one]), size(second.shape[other])
        has_shape = shapes[0] != shapes[1] or first.dtype[one] != second.dtype[other]
        found = {each.get(op_id, "") for each in precisions} if are_known else set()
        differs = len(found) > 1 and found.isdisjoint(NOT_REPORTED)
        is_fusion = differs and not found.isdisjoint(WITHIN_OTHERS)
        if has_shape:
            return OpChange.BOTH if differs and not is_fusion else OpChange.SHAPE
        return OpChange.FUSION if is_fusion else OpChange.PRECISION if differs else OpChange.SAME

    return tuple(change(op_id, *pair) for op_id, pair in zip(merged.table.op_id, merged.rows, strict=True))


def _is_onnx(table: GraphTable) -> bool:
    return any(op.startswith("onnx.") for op in table.op)


def _by_key(table: GraphTable) -> dict[_Key, list[int]]:
    found: dict[_Key, list[int]] = defaultdict(list)
    for row, key in enumerate(zip(table.module, table.op, strict=True)):
        found[key].append(row)
    return found


def _in_order(matches: dict[int, int], first: int, second: int) -> Iterator[tuple[int, int]]:
    """Pairs of rows in the order of the second graph; a row of the first alone follows what it follows there."""
    alone: dict[int, list[int]] = defaultdict(list)
    latest = -1
    for row in range(first):
        if row in matches:
            latest = max(latest, matches[row])
        else:
            alone[latest].append(row)
    partner = {other: row for row, other in matches.items()}
    yield from ((row, -1) for row in alone[-1])
    for other in range(second):
        yield partner.get(other, -1), other
        yield from ((row, -1) for row in alone[other])


def _free(op_id: str, taken: set[str]) -> str:
    while op_id in taken:
        op_id += "_in_A"
    taken.add(op_id)
    return op_id
