"""Paths between two ops along the edges of the graph."""

from collections import deque

import numpy as np

from ace_studio.gui.graph_layout.hierarchy import Ints
from ace_studio.records.graph import GraphTable


def shortest_path(table: GraphTable, start: int, end: int) -> list[int]:
    """Rows on a shortest path along the edges, from `start` to `end` or else back; empty if there is none."""
    source = np.array(table.edge_source, dtype=np.int64)
    target = np.array(table.edge_target, dtype=np.int64)
    order = np.argsort(source, kind="stable")
    starts = np.searchsorted(source[order], np.arange(len(table) + 1))
    readers = target[order]
    return _walk(starts, readers, start, end) or _walk(starts, readers, end, start)


def reach(table: GraphTable, rows: Ints, *, downstream: bool) -> Ints:
    """Rows that depend on these rows, or that these rows depend on; with the rows themselves, in order."""
    found = np.zeros(len(table), dtype=bool)
    found[rows] = True
    edges = zip(table.edge_source, table.edge_target, strict=True)
    # A row only reads rows before it, so one pass in the right order is enough.
    for source, target in sorted(edges) if downstream else sorted(edges, key=lambda edge: -edge[1]):
        start, end = (source, target) if downstream else (target, source)
        found[end] |= found[start]
    return np.flatnonzero(found)


def _walk(starts: Ints, readers: Ints, start: int, end: int) -> list[int]:
    came_from = {start: start}
    waiting = deque([start])
    while waiting:
        row = waiting.popleft()
        if row == end:
            way = [row]
            while way[-1] != start:
                way.append(came_from[way[-1]])
            return way[::-1]
        for reader in readers[starts[row] : starts[row + 1]].tolist():
            if reader not in came_from:
                came_from[reader] = row
                waiting.append(reader)
    return []
