"""The tree of blocks that a graph's module paths describe.

Nodes are numbered: rows of the table keep their index, the root is ``row_count`` and the other blocks follow it.
Three rules keep the tree readable: a module with one op is that op, a module whose only content is
another module is merged with it, and a run of identical sibling layers becomes one block marked xN.

A graph in subgraphs has a block per subgraph under the root, with the modules inside; breaks lie between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.results import SubgraphReport

Ints = npt.NDArray[np.int64]

MAX_DEPTH = 48
"""Deeper parts of a module path stay in the block at this depth; real models reach about 12."""

CONTAINERS = frozenset({"", "ModuleList", "ModuleDict"})
"""Classes without a forward of their own."""

NAME_GAP = " · "
"""Between the name of a subgraph and that of the module it is."""

MIN_STACK = 3
"""From this many identical neighbours on, one block stands for all."""


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


@dataclass
class _Tree:
    """The tree while it is still being cut and merged; block 0 is the root, children are rows or ``-1 - block``."""

    names: list[str] = field(default_factory=lambda: [""])
    paths: list[str] = field(default_factory=lambda: [""])
    types: list[str] = field(default_factory=lambda: [""])
    repeats: list[int] = field(default_factory=lambda: [0])
    subgraphs: list[int] = field(default_factory=lambda: [-1])
    children: list[list[int]] = field(default_factory=lambda: [[]])

    def add(self, *, name: str, path: str, module_type: str, repeats: int = 0, subgraph: int = -1) -> int:
        self.names.append(name)
        self.paths.append(path)
        self.types.append(module_type)
        self.repeats.append(repeats)
        self.subgraphs.append(subgraph)
        self.children.append([])
        return len(self.names) - 1


def build_hierarchy(
    table: GraphTable, *, fold_identical: bool = True, subgraphs: Sequence[SubgraphReport] = ()
) -> Hierarchy:
    """The tree of blocks of a table.

    Args:
        table: The captured graph.
        fold_identical: Whether runs of identical layers become one block.
        subgraphs: Names and fates of the subgraphs, if the graph is in subgraphs.
    """
    tree = _plant(table, subgraphs)
    _dissolve_scattered(tree)
    row_names = [""] * len(table)
    order = _preorder(tree)
    for block in reversed(order):
        _tidy_children(tree, block, row_names)
    signatures = _Signatures(table, tree, eager=frozenset(at for at, one in enumerate(subgraphs) if one.error))
    for block in reversed(_preorder(tree)):
        if fold_identical:
            _fold_runs(tree, block, signatures)
        signatures.of_block(block)
    return _columns(table, tree, signatures, tuple(row_names))


def _plant(table: GraphTable, subgraphs: Sequence[SubgraphReport]) -> _Tree:
    """Blocks for every subgraph and every prefix of every module path, each with its content in order of first row."""
    tree = _Tree()
    tree.types[0] = tree.names[0] = table.name
    types = dict(zip(table.module_paths, table.module_types, strict=False))
    by_path: dict[tuple[int, str], int] = {(-1, ""): 0}

    def block_of(subgraph: int, path: str) -> int:
        block = by_path.get((subgraph, path))
        if block is not None:
            return block
        parts = path.split(".")
        if not path:
            about = subgraphs[subgraph] if subgraph < len(subgraphs) else None
            name = about.name if about else f"p{subgraph}"
            module = about.module if about else ""
            title = f"{name}{NAME_GAP}{module}" if module else name
            block = tree.add(name=title, path=name, module_type=types.get(module, ""), subgraph=subgraph)
            tree.children[0].append(-1 - block)
        elif len(parts) > MAX_DEPTH:
            block = block_of(subgraph, ".".join(parts[:MAX_DEPTH]))
        else:
            parent = block_of(subgraph, ".".join(parts[:-1]))
            block = tree.add(name=parts[-1], path=path, module_type=types.get(path, ""))
            tree.children[parent].append(-1 - block)
        by_path[subgraph, path] = block
        return block

    for row, path in enumerate(table.module):
        subgraph = table.piece[row] if table.piece else -1
        # In a partial capture, rows without a subgraph lie between the subgraphs.
        is_between = bool(table.piece) and subgraph < 0
        tree.children[block_of(subgraph, "" if is_between else path)].append(row)
    return tree


def _preorder(tree: _Tree) -> list[int]:
    """Blocks reachable from the root, parents before children."""
    order, waiting = [], [0]
    while waiting:
        block = waiting.pop()
        order.append(block)
        waiting.extend(-1 - child for child in reversed(tree.children[block]) if child < 0)
    return order


def _dissolve_scattered(tree: _Tree) -> None:
    """Put the content of pure containers whose parts run at different times into what contains them.

    The stages of a U-Net sit in two lists; drawn as two blocks they would be a tangle of cycles.
    """
    spans: dict[int, tuple[int, int, int]] = {}
    for block in reversed(_preorder(tree)):
        for at in range(len(tree.children[block]) - 1, -1, -1):
            child = tree.children[block][at]
            if child >= 0 or tree.types[-1 - child] not in CONTAINERS or tree.subgraphs[-1 - child] >= 0:
                continue
            first, last, count = spans[-1 - child]
            if count != last - first + 1:
                inner = tree.children[-1 - child]
                for node in inner:
                    if node < 0:
                        tree.names[-1 - node] = f"{tree.names[-1 - child]}.{tree.names[-1 - node]}"
                tree.children[block][at : at + 1] = inner
        parts = [(child, child, 1) if child >= 0 else spans[-1 - child] for child in tree.children[block]]
        order = sorted(range(len(parts)), key=lambda at: parts[at][0])
        tree.children[block] = [tree.children[block][at] for at in order]
        if parts:
            spans[block] = (min(p[0] for p in parts), max(p[1] for p in parts), sum(p[2] for p in parts))


def _tidy_children(tree: _Tree, block: int, row_names: list[str]) -> None:
    """Replace blocks of one row by the row and merge blocks whose only content is another block."""
    for at, child in enumerate(tree.children[block]):
        if child >= 0:
            continue
        inner = tree.children[-1 - child]
        if tree.subgraphs[-1 - child] >= 0:
            _name_after_content(tree, -1 - child)
            continue
        if len(inner) != 1:
            continue
        name = tree.names[-1 - child]
        tree.children[block][at] = only = inner[0]
        if only >= 0:
            row_names[only] = f"{name}.{row_names[only]}" if row_names[only] else name
        else:
            tree.names[-1 - only] = f"{name}.{tree.names[-1 - only]}"


def _name_after_content(tree: _Tree, subgraph: int) -> None:
    """A subgraph whose only content is a module takes its content, and its name if it has none of its own.

    It stays a block of its own.
    """
    inner = tree.children[subgraph]
    if len(inner) == 1 and inner[0] < 0:
        only = -1 - inner[0]
        if NAME_GAP not in tree.names[subgraph]:
            tree.names[subgraph] = f"{tree.names[subgraph]}{NAME_GAP}{tree.names[only]}"
        tree.types[subgraph] = tree.types[only]
        tree.children[subgraph] = tree.children[only]


class _Signatures:
    """Small numbers that are equal for nodes that look the same inside."""

    def __init__(self, table: GraphTable, tree: _Tree, *, eager: frozenset[int]) -> None:
        self._tree = tree
        self._eager = eager
        self._numbers: dict[object, int] = {}
        self._blocks: dict[int, int] = {}
        rows = zip(table.op, table.shape, table.dtype, strict=True)
        self.rows = [self._numbers.setdefault(key, len(self._numbers)) for key in rows]

    def of(self, child: int) -> int:
        return self.rows[child] if child >= 0 else self.of_block(-1 - child)

    def of_block(self, block: int) -> int:
        known = self._blocks.get(block)
        if known is None:
            inside = tuple(self.of(child) for child in self._tree.children[block])
            subgraph = self._tree.subgraphs[block]
            kind = (subgraph >= 0, subgraph in self._eager)
            key = (self._tree.types[block], self._tree.repeats[block], kind, inside)
            known = self._blocks[block] = self._numbers.setdefault(key, len(self._numbers))
        return known


def _fold_runs(tree: _Tree, block: int, signatures: _Signatures) -> None:
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


def _stack(tree: _Tree, run: list[int]) -> int:
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


def shorter_names(name: str) -> tuple[str, ...]:
    """A name and what can stand for it where there is less room: ``p13 · layers.0.norm``, ``p13 · norm``, ``p13``."""
    subgraph, gap, module = name.partition(NAME_GAP)
    if not gap:
        return (name,)
    parts = module.split(".")
    return (*(f"{subgraph}{gap}{'.'.join(parts[at:])}" for at in range(len(parts))), subgraph)


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


def _columns(table: GraphTable, tree: _Tree, signatures: _Signatures, row_names: tuple[str, ...]) -> Hierarchy:
    """The finished tree with its blocks renumbered in preorder."""
    rows = len(table)
    order = _preorder(tree)
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
