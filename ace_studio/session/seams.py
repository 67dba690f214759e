"""Rows of a graph that are graph breaks, and their entries in the list of breaks."""

from collections.abc import Sequence

from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.results import GraphBreak


def break_rows(graph: GraphTable) -> tuple[int, ...]:
    """Rows that are graph breaks, in order of execution."""
    return tuple(row for row, kind in enumerate(graph.kind) if kind is OpKind.BREAK)


def seam_numbers(graph: GraphTable, breaks: Sequence[GraphBreak]) -> dict[int, int]:
    """Row -> index into ``breaks``. The id decides; without one, file and line do. Unlisted rows are left out."""
    by_id = {one.id: at for at, one in enumerate(breaks) if one.id}
    by_place = {(one.file, one.line): at for at, one in reversed(tuple(enumerate(breaks)))}
    found = {}
    for row in break_rows(graph):
        file = graph.files[graph.file[row]] if 0 <= graph.file[row] < len(graph.files) else ""
        at = by_id.get(graph.op_id[row], by_place.get((file, graph.line[row])))
        if at is not None:
            found[row] = at
    return found


def rows_of_seam(graph: GraphTable, breaks: Sequence[GraphBreak], index: int) -> tuple[int, ...]:
    """All rows of one entry of the list of breaks; a line that runs several times may have several."""
    return tuple(row for row, at in seam_numbers(graph, breaks).items() if at == index)


def seam_of_ops(graph: GraphTable | None, breaks: Sequence[GraphBreak], op_ids: Sequence[str]) -> int | None:
    """The entry of the selected ops if all of them are rows of the same break, else None."""
    if graph is None or not op_ids or not breaks:
        return None
    selected = set(op_ids)
    kinds = {graph.op_id[row]: at for row, at in seam_numbers(graph, breaks).items() if graph.op_id[row] in selected}
    entries = set(kinds.values())
    return entries.pop() if len(kinds) == len(selected) and len(entries) == 1 else None
