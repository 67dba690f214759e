"""Edges between ops, moved to the blocks in which they are drawn.

An edge belongs to the lowest block that contains both ends. On its way there it leaves some blocks and enters
others; it does so through ports, so that it can be followed through the frame of an open block.
"""

from dataclasses import dataclass

import numpy as np

from ace_studio.gui.graph_layout.hierarchy import Hierarchy, Ints


@dataclass(frozen=True, kw_only=True)
class Links:
    """Rows sorted by block, with where each block's rows start."""

    start: Ints
    """[blocks + 1]"""
    first: Ints
    second: Ints
    row: Ints
    """Row of the table that produces the value."""

    def of(self, at: int) -> tuple[list[int], list[int], list[int]]:
        """The three columns of one block, by the block's number (0 is the root)."""
        part = slice(int(self.start[at]), int(self.start[at + 1]))
        return self.first[part].tolist(), self.second[part].tolist(), self.row[part].tolist()


@dataclass(frozen=True, kw_only=True)
class LiftedEdges:
    """What every block has to draw."""

    inner: Links
    """first = child that produces, second = child that consumes."""
    entering: Links
    """first = second = child that consumes a value from outside."""
    leaving: Links
    """first = second = child that produces a value used outside."""


def lift_edges(tree: Hierarchy, edge_source: Ints, edge_target: Ints) -> LiftedEdges:
    """Assign every edge to blocks.

    Shapes: edge_source, edge_target [edges], row indices.
    """
    levels = tree.ancestors.shape[1]
    from_chain, to_chain = tree.ancestors[edge_source], tree.ancestors[edge_target]
    meet = (from_chain != to_chain).argmax(axis=1)
    differs = edge_source != edge_target
    source, target, meet = edge_source[differs], edge_target[differs], meet[differs]
    from_chain, to_chain = from_chain[differs], to_chain[differs]
    each = np.arange(len(source))
    inner = _links(
        tree, from_chain[each, meet - 1], first=from_chain[each, meet], second=to_chain[each, meet], row=source
    )
    entering, leaving = [], []
    for level in range(1, levels - 1):
        passing = (meet <= level) & (level < tree.depth[target])
        entering.append((to_chain[passing, level], to_chain[passing, level + 1], source[passing]))
        passing = (meet <= level) & (level < tree.depth[source])
        leaving.append((from_chain[passing, level], from_chain[passing, level + 1], source[passing]))
    return LiftedEdges(inner=inner, entering=_stacked(tree, entering), leaving=_stacked(tree, leaving))


def _stacked(tree: Hierarchy, parts: list[tuple[Ints, Ints, Ints]]) -> Links:
    empty = np.zeros(0, dtype=np.int64)
    block, child, row = (np.concatenate([empty, *(part[column] for part in parts)]) for column in range(3))
    return _links(tree, block, first=child, second=child, row=row)


def _links(tree: Hierarchy, block: Ints, *, first: Ints, second: Ints, row: Ints) -> Links:
    """Unique links sorted by block, first, second and row."""
    order = np.lexsort((row, second, first, block))
    columns = [column[order] for column in (block, first, second, row)]
    if len(order):
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        columns = [column[fresh] for column in columns]
    blocks = np.arange(tree.row_count, tree.node_count + 1)
    return Links(start=np.searchsorted(columns[0], blocks), first=columns[1], second=columns[2], row=columns[3])
