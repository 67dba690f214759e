"""The tree of blocks that a graph's module paths describe.

Nodes are numbered: rows of the table keep their index, the root is ``row_count`` and the other blocks follow it.
Four rules keep the tree readable: a module with one op is that op, a module whose only content is
another module is merged with it, a run of identical sibling layers becomes one block marked xN, and more children
than can be read are put into numbered segments.

A graph in subgraphs has a block per subgraph under the root, with the modules inside; breaks lie between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_layout.blocks import NAME_GAP, BlockTree, dissolve_scattered, plant, preorder, tidy_children
from ace_studio.gui.graph_layout.folding import Segments, Signatures, fold_runs
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.results import SubgraphReport

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """The tree of blocks as columns. Index n of a per-node column is row n, or block ``n - row_count``."""

    row_count: int
    parent: Ints
    """[nodes] node that contains each node; -1 for the root."""
    depth: Ints
    """[nodes] 0 for the root."""
    child_start: Ints
    """[blocks + 1] where the children of each block start in `child_index`."""
    child_index: Ints
    """Children of all blocks, each block's in order of its first op."""
    first_row: Ints
    """[nodes] first row inside."""
    rows_inside: Ints
    """[nodes] rows inside; 1 for a row."""
    ops_inside: Ints
    """[nodes] rows inside that compute something."""
    signature: Ints
    """[nodes] equal for nodes that look the same inside."""
    names: tuple[str, ...]
    """[blocks] name on the box of the block."""
    paths: tuple[str, ...]
    """[blocks] module path; a run of identical layers ends in ``first-last``."""
    types: tuple[str, ...]
    """[blocks] class name; empty if unknown."""
    repeats: tuple[int, ...]
    """[blocks] how many identical layers a block stands for; 0 for an ordinary one."""
    subgraphs: tuple[int, ...]
    """[blocks] index of the subgraph that a block is; -1 for modules."""
    is_segment: tuple[bool, ...]
    """[blocks] whether a block only numbers a part of a long list."""
    row_names: tuple[str, ...]
    """[rows] name of the module a row stands for alone, such as ``conv1``; empty otherwise."""

    @property
    def root(self) -> int:
        """Node number of the root."""
        return self.row_count

    @property
    def node_count(self) -> int:
        """Rows and blocks together."""
        return len(self.parent)

    def children(self, block: int) -> Ints:
        """Children of a block, in order of their first op."""
        at = block - self.row_count
        return self.child_index[self.child_start[at] : self.child_start[at + 1]]

    def chain(self, node: int) -> list[int]:
        """The node and everything that contains it, innermost first, root last."""
        nodes = [node]
        while self.parent[nodes[-1]] >= 0:
            nodes.append(int(self.parent[nodes[-1]]))
        return nodes

    def block_of_path(self, path: str) -> int | None:
        """Node number of the block with this module path."""
        return self._block_by_path.get(path)

    @cached_property
    def _block_by_path(self) -> dict[str, int]:
        return {path: self.row_count + at for at, path in reversed(tuple(enumerate(self.paths)))}

    @cached_property
    def ancestors(self) -> Ints:
        """[rows, depth + 1] node on the way from the root to each row; the row itself from its depth on."""
        levels = int(self.depth.max(initial=0)) + 1
        table = np.empty((self.row_count, levels), dtype=np.int64)
        node = np.arange(self.row_count, dtype=np.int64)
        depth = self.depth[: self.row_count]
        for level in range(levels - 1, -1, -1):
            table[:, level] = node
            node = np.where(depth >= level, self.parent[node], node)
        return table


def build_hierarchy(table: GraphTable, *, subgraphs: Sequence[SubgraphReport] = ()) -> Hierarchy:
    """The tree of blocks of a table.

    Args:
        table: The captured graph.
        subgraphs: Names and fates of the subgraphs, if the graph is in subgraphs.
    """
    tree = plant(table, subgraphs)
    dissolve_scattered(tree)
    row_names = [""] * len(table)
    for block in reversed(preorder(tree)):
        tidy_children(tree, block, row_names)
    signatures = Signatures(table, tree, eager=frozenset(at for at, one in enumerate(subgraphs) if one.error))
    segments = Segments(table, tree)
    for block in reversed(preorder(tree)):
        fold_runs(tree, block, signatures)
        signatures.of_block(block)
        segments.cut(block)
    return _columns(table, tree, signatures, tuple(row_names))


def shorter_names(name: str) -> tuple[str, ...]:
    """A name and what can stand for it where there is less room: ``p13 · layers.0.norm``, ``p13 · norm``, ``p13``."""
    subgraph, gap, module = name.partition(NAME_GAP)
    if not gap:
        return (name,)
    parts = module.split(".")
    return (*(f"{subgraph}{gap}{'.'.join(parts[at:])}" for at in range(len(parts))), subgraph)


def _columns(table: GraphTable, tree: BlockTree, signatures: Signatures, row_names: tuple[str, ...]) -> Hierarchy:
    """The finished tree with its blocks renumbered in preorder."""
    rows = len(table)
    order = preorder(tree)
    number = {block: rows + at for at, block in enumerate(order)}
    total = rows + len(order)
    parent = np.full(total, -1, dtype=np.int64)
    depth = np.zeros(total, dtype=np.int64)
    starts, index = [0], []
    for block in order:
        nodes = [child if child >= 0 else number[-1 - child] for child in tree.children[block]]
        parent[nodes] = number[block]
        depth[nodes] = depth[number[block]] + 1
        index.extend(nodes)
        starts.append(len(index))
    first = np.concatenate([np.arange(rows), np.full(len(order), rows)])
    inside = np.concatenate([np.ones(rows, dtype=np.int64), np.zeros(len(order), dtype=np.int64)])
    ops = np.concatenate([np.array([kind is OpKind.OP for kind in table.kind], dtype=np.int64), inside[rows:]])
    for node in range(total - 1, rows, -1):
        _add_up(node, (first, inside, ops), _slice(index, starts, node - rows))
    _add_up(rows, (first, inside, ops), _slice(index, starts, 0))
    for at in range(len(order)):
        children = index[starts[at] : starts[at + 1]]
        index[starts[at] : starts[at + 1]] = sorted(children, key=lambda node: (int(first[node]), node))
    return Hierarchy(
        row_count=rows,
        parent=parent,
        depth=depth,
        child_start=np.array(starts, dtype=np.int64),
        child_index=np.array(index, dtype=np.int64),
        first_row=first,
        rows_inside=inside,
        ops_inside=ops,
        signature=np.array(signatures.rows + [signatures.of_block(block) for block in order], dtype=np.int64),
        names=tuple(tree.names[block] for block in order),
        paths=tuple(tree.paths[block] for block in order),
        types=tuple(tree.types[block] for block in order),
        repeats=tuple(tree.repeats[block] for block in order),
        subgraphs=tuple(tree.subgraphs[block] for block in order),
        is_segment=tuple(tree.is_segment[block] for block in order),
        row_names=row_names,
    )


def _slice(index: list[int], starts: list[int], at: int) -> list[int]:
    return index[starts[at] : starts[at + 1]]


def _add_up(node: int, columns: tuple[Ints, Ints, Ints], children: list[int]) -> None:
    """First row, rows and ops of a block from those of its children."""
    first, inside, ops = columns
    if children:
        first[node] = first[children].min()
        inside[node] = inside[children].sum()
        ops[node] = ops[children].sum()
