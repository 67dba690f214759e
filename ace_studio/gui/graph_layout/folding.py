"""Folds runs of identical layers into one block, and long lists of ops into numbered segments."""

from collections import Counter
from itertools import pairwise

import numpy as np

from ace_studio.gui.graph_layout.blocks import NAME_GAP, BlockTree
from ace_studio.gui.graph_layout.sizes import short_op
from ace_studio.records.graph import GraphTable, OpKind

MIN_STACK = 3
"""From this many identical neighbours on, one block stands for all."""

MAX_CHILDREN = 48
"""A block with more children shows them in segments."""

SEGMENT = 24
"""A segment has about this many children at most."""

_NAMED_OPS = 3


class Signatures:
    """Small numbers that are equal for nodes that look the same inside."""

    def __init__(self, table: GraphTable, tree: BlockTree, *, eager: frozenset[int]) -> None:
        self._tree = tree
        self._eager = eager
        self._numbers: dict[object, int] = {}
        self._blocks: dict[int, int] = {}
        rows = zip(table.op, table.shape, table.dtype, strict=True)
        self.rows = [self._numbers.setdefault(key, len(self._numbers)) for key in rows]

    def of(self, child: int) -> int:
        """The number of a row or of a block."""
        return self.rows[child] if child >= 0 else self.of_block(-1 - child)

    def of_block(self, block: int) -> int:
        """The number of a block."""
        known = self._blocks.get(block)
        if known is None:
            inside = tuple(self.of(child) for child in self._tree.children[block])
            subgraph = self._tree.subgraphs[block]
            kind = (subgraph >= 0, subgraph in self._eager)
            key = (self._tree.types[block], self._tree.repeats[block], kind, inside)
            known = self._blocks[block] = self._numbers.setdefault(key, len(self._numbers))
        return known


def fold_runs(tree: BlockTree, block: int, signatures: Signatures) -> None:
    """Put runs of identical child blocks into blocks of their own (or mark the block, if it is one run)."""
    children = tree.children[block]
    folded: list[int] = []
    at = 0
    while at < len(children):
        end = at + 1
        if children[at] < 0:
            like = signatures.of(children[at])
            while end < len(children) and children[end] < 0 and signatures.of(children[end]) == like:
                end += 1
        run = children[at:end]
        if len(run) < MIN_STACK:
            folded.extend(run)
        elif len(run) == len(children) and block:
            tree.repeats[block] = len(run)
            tree.types[block] = tree.types[-1 - run[0]]
            return
        else:
            folded.append(-1 - _stack(tree, run))
        at = end
    tree.children[block] = folded


def _stack(tree: BlockTree, run: list[int]) -> int:
    """A new block around a run of identical blocks."""
    (first, _, first_module), (last, _, last_module) = (tree.names[-1 - run[at]].partition(NAME_GAP) for at in (0, -1))
    stem = tree.paths[-1 - run[0]].removesuffix(first)
    stack = tree.add(
        name=_range_name(f"{first}-{last}", first_module, last_module),
        path=f"{stem}{first}-{last}",
        module_type=tree.types[-1 - run[0]],
        repeats=len(run),
    )
    tree.children[stack] = list(run)
    return stack


def _range_name(name: str, first: str, last: str) -> str:
    """``p0-p3 · layers.0.experts.0-3``: the subgraphs, and the parts of their module paths that differ."""
    if not first or not last:
        return name
    ours, theirs = first.split("."), last.split(".")
    same = next(
        (at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
    )
    stem, rest = ".".join(ours[:same]), f"{'.'.join(ours[same:])}-{'.'.join(theirs[same:])}".strip("-")
    return f"{name}{NAME_GAP}{'.'.join(part for part in (stem, rest) if part)}"


class Segments:
    """Cuts long lists of children into segments, and those into segments again, where few lines cross the cut."""

    def __init__(self, table: GraphTable, tree: BlockTree) -> None:
        self._table, self._tree = table, tree
        self._number = np.cumsum(np.array([kind is OpKind.OP for kind in table.kind], dtype=np.int64))
        self._last_reader = np.arange(len(table))
        edges = np.array([table.edge_source, table.edge_target], dtype=np.int64)
        np.maximum.at(self._last_reader, edges[0], edges[1])

    def cut(self, block: int) -> None:
        """Replace the children of a block by segments if there are too many to read."""
        children = self._tree.children[block]
        if len(children) <= MAX_CHILDREN or any(row >= 0 and self._kind(row) is OpKind.BREAK for row in children):
            return
        is_border = [row >= 0 and self._kind(row) is not OpKind.OP for row in children]
        start = next((at for at, border in enumerate(is_border) if not border), 0)
        end = len(children) - next((at for at, border in enumerate(reversed(is_border)) if not border), 0)
        if len(children) - (end - start) > SEGMENT:
            start, end = 0, len(children)
        nodes, firsts = children[start:end], [self._span(child)[0] for child in children[start:end]]
        crossing = self._crossing(nodes, firsts)
        levels = max(1, int(np.ceil(np.log(len(nodes)) / np.log(SEGMENT) - 1e-9)))
        size = int(np.ceil(len(nodes) ** (1 / levels)))
        for _ in range(levels - 1):
            cuts = _cuts(crossing, size)
            nodes = [-1 - self._segment(block, nodes[a:b]) for a, b in pairwise(cuts)]
            crossing = crossing[cuts[:-1]]
        self._tree.children[block] = [*children[:start], *nodes, *children[end:]]

    def _kind(self, row: int) -> OpKind:
        return self._table.kind[row]

    def _span(self, child: int) -> tuple[int, int]:
        """First and last row inside."""
        low = high = child
        while low < 0:
            low = self._tree.children[-1 - low][0]
        while high < 0:
            high = self._tree.children[-1 - high][-1]
        return low, high

    def _crossing(self, nodes: list[int], firsts: list[int]) -> np.ndarray:
        """[nodes] how many values pass from before each node to it or beyond."""
        starts = np.array(firsts)
        rows = np.arange(starts[0], self._span(nodes[-1])[1] + 1)
        home = np.searchsorted(starts, rows, side="right") - 1
        reader = np.minimum(np.searchsorted(starts, self._last_reader[rows], side="right") - 1, len(nodes) - 1)
        steps = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.add.at(steps, np.minimum(home, reader) + 1, 1)
        np.add.at(steps, reader + 1, -1)
        return np.cumsum(steps)[:-1]

    def _segment(self, block: int, nodes: list[int]) -> int:
        tree = self._tree
        first, last = int(self._number[self._span(nodes[0])[0]]), int(self._number[self._span(nodes[-1])[1]])
        name = f"ops {first:,}-{last:,}"
        if all(node < 0 for node in nodes) and not any(tree.is_segment[-1 - node] for node in nodes):
            name = f"{tree.names[-1 - nodes[0]]} - {tree.names[-1 - nodes[-1]]}"
        segment = tree.add(name=name, path=f"{tree.paths[block]} {name}".strip(), module_type=self._holds(nodes))
        tree.children[segment], tree.is_segment[segment] = nodes, True
        return segment

    def _holds(self, nodes: list[int]) -> str:
        """The most frequent ops or classes of the nodes."""
        counts: Counter[str] = Counter()
        for node in nodes:
            if node >= 0:
                counts[short_op(self._table.op[node])] += 1
            else:
                counts.update(self._tree.types[-1 - node].split(", "))
        return ", ".join(word for word, _ in counts.most_common(_NAMED_OPS) if word)


def _cuts(crossing: np.ndarray, size: int) -> list[int]:
    """Where the segments start, and the end: each within a third of the size, where the fewest values pass."""
    cuts, count, slack = [0], len(crossing), max(1, size // 3)
    while count - cuts[-1] > size + slack:
        wanted = cuts[-1] + size
        near = np.arange(wanted - slack, min(wanted + slack, count - 1) + 1)
        cuts.append(int(near[np.lexsort((np.abs(near - wanted), crossing[near]))[0]]))
    return [*cuts, count]
