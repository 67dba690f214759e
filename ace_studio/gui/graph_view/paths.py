"""Paths between two ops along the edges of the graph."""

from __future__ import annotations

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
