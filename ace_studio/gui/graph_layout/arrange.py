"""Which blocks are open, the layout of each, and the flat scene that a view draws.

Coordinates are kept per block, relative to the block. A scene is made by adding up offsets level by level, for all
nodes at once: about 10 ms for 50,000 rows, so nothing has to be patched when a block opens.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_layout.hierarchy import Ints, build_hierarchy
from ace_studio.gui.graph_layout.layered import BlockLayout, BlockProblem, Edge, lay_out_block
from ace_studio.gui.graph_layout.lifting import Links, lift_edges
from ace_studio.gui.graph_layout.sizes import FRAME_BOTTOM, FRAME_SIDE, TITLE_HEIGHT, node_sizes
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import SubgraphReport

_Floats = npt.NDArray[np.float64]

MAX_PORTS = 6
"""More values than this enter or leave a block through its last port together."""

READABLE = (60, 40, 25, 15)
"""A graph opens with at most about this many boxes: the first number whose picture can be read in the window."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Everything visible, in one coordinate system. Rows of `segments` belong to `segment_*` of the same index."""

    x: _Floats
    """[nodes] left edge; only meaningful where `visible`."""
    y: _Floats
    width: _Floats
    height: _Floats
    visible: npt.NDArray[np.bool_]
    boxes: Ints
    """Rows and closed blocks that are visible."""
    frames: Ints
    """Open blocks that are visible, outer ones first, without the root."""
    stands_for: Ints
    """[rows] the visible box in which each row is."""
    segments: _Floats
    """[segments, 4] start and end of each segment of a line."""
    segment_kind: npt.NDArray[np.uint8]
    segment_arrow: npt.NDArray[np.int8]
    segment_source: Ints
    """Node that produces the value; the block itself for a value that enters it."""
    segment_target: Ints
    """Node that is reached, the block itself for a value that leaves it; -1 where several edges share the segment."""
    segment_rank: npt.NDArray[np.int32]
    segment_block: Ints
    """Block in which the segment is drawn."""
    total_width: float
    total_height: float


class Arrangement:
    """The state of one graph's picture: open blocks and their layouts."""

    def __init__(
        self, table: GraphTable, *, subgraphs: Sequence[SubgraphReport] = (), check: Callable[[], object] = bool
    ) -> None:
        """Start with every block but the root closed. ``check`` is called often and may raise to end the work."""
        self.table = table
        self.tree = build_hierarchy(table, subgraphs=subgraphs)
        check()
        source = np.array(table.edge_source, dtype=np.int64)
        self._lifted = lift_edges(self.tree, source, np.array(table.edge_target, dtype=np.int64))
        check()
        self._closed_width, self._closed_height = node_sizes(table, self.tree)
        self._width, self._height = self._closed_width.copy(), self._closed_height.copy()
        self._local_x, self._local_y = np.zeros(self.tree.node_count), np.zeros(self.tree.node_count)
        self._open = np.zeros(self.tree.node_count, dtype=bool)
        self._layouts: dict[int, BlockLayout] = {}
        self._indents: dict[int, tuple[float, float]] = {}
        self._ports: dict[int, tuple[dict[int, int], dict[int, int]]] = {}
        self._remembered: dict[tuple[object, ...], BlockLayout] = {}
        self.layouts_computed = 0
        self._open[self.tree.root] = True
        self._refresh([self.tree.root], check)

    def copy(self) -> Arrangement:
        """One in which blocks can be opened, in another thread too, while this one is shown."""
        made = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) or name in {"_layouts", "_indents", "_ports"}:
                setattr(made, name, value.copy())
        return made

    def work_of(self, blocks: Sequence[int]) -> int:
        """How many boxes have to be placed anew after these blocks were opened or closed."""
        touched = {above for block in blocks if self.is_block(block) for above in self.tree.chain(block)}
        return sum(len(self.tree.children(block)) for block in touched)

    def is_block(self, node: int) -> bool:
        """Whether the node is a block, not a row."""
        return node >= self.tree.root

    def is_open(self, node: int) -> bool:
        """Whether the node is an open block; it may still be hidden in a closed one."""
        return bool(self._open[node])

    def open(self, blocks: list[int]) -> None:
        """Open blocks; lays out them and what contains them."""
        self.set_open(blocks, to=True)

    def close(self, blocks: list[int]) -> None:
        """Close blocks, except the root."""
        self.set_open(blocks, to=False)

    def set_open(self, blocks: list[int], *, to: bool, check: Callable[[], object] = bool) -> None:
        """Open or close blocks; ``check`` is called before each layout and may raise to end the work."""
        changed = [block for block in blocks if block > self.tree.root and bool(self._open[block]) != to]
        self._open[changed] = to
        touched = {above for block in changed for above in self.tree.chain(block)}
        self._refresh(sorted(touched, key=lambda block: -int(self.tree.depth[block])), check)

    def inner_blocks(self, block: int) -> list[int]:
        """The block and every block inside it."""
        found, waiting = [], [block]
        while waiting:
            at = waiting.pop()
            found.append(at)
            waiting.extend(int(child) for child in self.tree.children(at) if self.is_block(int(child)))
        return found

    def open_readably(self, width: float = math.inf, height: float = math.inf) -> None:
        """Open so many blocks that the picture fits into this area; about 15 boxes where none fits, 60 at most.

        The area is in units of the scene: that of the window divided by the least scale at which texts can be read.
        """
        root = self.tree.root
        for limit in READABLE:
            chosen, now = set(self._blocks_within(limit)), set(np.flatnonzero(self._open).tolist())
            self.close(sorted(now - chosen))
            self.open(sorted(chosen - now))
            if self._width[root] <= width and self._height[root] <= height:
                return

    def _blocks_within(self, limit: int) -> list[int]:
        """The blocks to open, level by level, so that at most about `limit` boxes are visible.

        Blocks of one class and size open together or not at all. Runs of identical layers and
        segments of long lists stay closed.
        """
        shown = len(self.tree.children(self.tree.root))
        level = [int(child) for child in self.tree.children(self.tree.root) if self.is_block(int(child))]
        opened: list[int] = []
        while level:
            alike: dict[tuple[str, int], list[int]] = {}
            for block in level:
                if self.tree.repeats[block - self.tree.root] or self.tree.is_segment[block - self.tree.root]:
                    continue
                kind = self.tree.types[block - self.tree.root], len(self.tree.children(block))
                alike.setdefault(kind, []).append(block)
            level = []
            for blocks in sorted(alike.values(), key=lambda blocks: len(self.tree.children(blocks[0])) * len(blocks)):
                more = len(blocks) * (len(self.tree.children(blocks[0])) - 1)
                if shown + more <= limit:
                    shown += more
                    opened.extend(blocks)
                    level.extend(int(c) for b in blocks for c in self.tree.children(b) if self.is_block(int(c)))
        return opened

    def _refresh(self, blocks: list[int], check: Callable[[], object]) -> None:
        for block in blocks:
            check()
            if not self._open[block]:
                self._width[block], self._height[block] = self._closed_width[block], self._closed_height[block]
                continue
            layout = self._lay_out(block)
            self._layouts[block] = layout
            children = self.tree.children(block)
            is_root = block == self.tree.root
            side, top = (0.0, 0.0) if is_root else (FRAME_SIDE, TITLE_HEIGHT)
            bottom = 0.0 if is_root or layout.leaving_x else FRAME_BOTTOM
            least = 0.0 if is_root else self._closed_width[block]
            width = max(layout.width + 2 * side, least)
            indent = (width - layout.width) / 2
            self._indents[block] = (indent, top)
            self._local_x[children] = layout.x + indent
            self._local_y[children] = layout.y + top
            self._width[block], self._height[block] = width, layout.height + top + bottom

    def _lay_out(self, block: int) -> BlockLayout:
        problem = self._problem(block)
        key = (problem.widths, problem.heights, problem.edges, problem.entering, problem.leaving)
        layout = self._remembered.get(key)
        if layout is None:
            self.layouts_computed += 1
            layout = self._remembered[key] = lay_out_block(problem)
        return layout

    def _problem(self, block: int) -> BlockProblem:
        """The block's children, edges and ports in the form that `lay_out_block` takes."""
        at = block - self.tree.row_count
        children = self.tree.children(block).tolist()
        place = {child: index for index, child in enumerate(children)}
        entering = _port_numbers(self._lifted.entering, at)
        leaving = _port_numbers(self._lifted.leaving, at)
        self._ports[block] = (entering, leaving)
        ports_in = _port_count(entering)
        edges = set()
        for first, second, row in zip(*self._lifted.inner.of(at), strict=True):
            edges.add((place[first], place[second], self._leaves_at(first, row), self._enters_at(second, row)))
        for child, _, row in zip(*self._lifted.entering.of(at), strict=True):
            edges.add((len(children) + entering[row], place[child], 0.0, self._enters_at(child, row)))
        for child, _, row in zip(*self._lifted.leaving.of(at), strict=True):
            port = len(children) + ports_in + leaving[row]
            edges.add((place[child], port, self._leaves_at(child, row), 0.0))
        return BlockProblem(
            widths=tuple(self._width[children].tolist()),
            heights=tuple(self._height[children].tolist()),
            edges=tuple(Edge(source=s, target=t, source_offset=a, target_offset=b) for s, t, a, b in sorted(edges)),
            entering=ports_in,
            leaving=_port_count(leaving),
        )

    def _enters_at(self, child: int, row: int) -> float:
        """Where the value of a row enters a child, from the child's middle."""
        if not self._open[child]:
            return 0.0
        return self._port_offset(child, self._layouts[child].entering_x[self._ports[child][0][row]])

    def _leaves_at(self, child: int, row: int) -> float:
        if not self._open[child]:
            return 0.0
        return self._port_offset(child, self._layouts[child].leaving_x[self._ports[child][1][row]])

    def _port_offset(self, block: int, port_x: float) -> float:
        return round(self._indents[block][0] + port_x - float(self._width[block]) / 2, 3)

    def scene(self) -> Scene:
        """The flat picture of the present state."""
        tree = self.tree
        x, y = self._local_x.copy(), self._local_y.copy()
        visible = np.zeros(tree.node_count, dtype=bool)
        visible[tree.root] = True
        by_depth = np.argsort(tree.depth, kind="stable")
        depths = np.searchsorted(tree.depth[by_depth], np.arange(1, int(tree.depth.max()) + 2))
        for start, end in pairwise(depths):
            nodes = by_depth[start:end]
            above = tree.parent[nodes]
            x[nodes] += x[above]
            y[nodes] += y[above]
            visible[nodes] = visible[above] & self._open[above]
        shown_open = visible & self._open
        frames = by_depth[shown_open[by_depth]]
        rows = np.arange(tree.row_count)
        segments = self._flat_segments(frames, x, y)
        return Scene(
            x=x,
            y=y,
            width=self._width.copy(),
            height=self._height.copy(),
            visible=visible,
            boxes=np.flatnonzero(visible & ~self._open),
            frames=frames[frames != tree.root],
            stands_for=self._stand_ins(rows, visible),
            total_width=float(self._width[tree.root]),
            total_height=float(self._height[tree.root]),
            **segments,
        )

    def _stand_ins(self, rows: Ints, visible: npt.NDArray[np.bool_]) -> Ints:
        """For each row the innermost visible node that contains it."""
        stand_in = rows.copy()
        for level in range(self.tree.ancestors.shape[1] - 1, -1, -1):
            hidden = ~visible[stand_in]
            if not hidden.any():
                break
            deeper = self.tree.depth[stand_in] > level
            stand_in = np.where(hidden & deeper, self.tree.ancestors[:, level], stand_in)
        return stand_in

    def _flat_segments(self, blocks: Ints, x: _Floats, y: _Floats) -> dict[str, npt.NDArray]:
        """Segments of all open visible blocks, shifted to where the blocks are."""
        routes = [self._layouts[int(block)].routes for block in blocks]
        counts = np.array([len(route.kind) for route in routes], dtype=np.int64)
        block_of = np.repeat(blocks, counts)
        indents = np.array([self._indents[int(block)] for block in blocks]).reshape(-1, 2)
        shift = np.column_stack([x[blocks] + indents[:, 0], y[blocks] + indents[:, 1]]).repeat(counts, axis=0)
        ends = np.concatenate([route.ends for route in routes]) + np.hstack([shift, shift])
        starts = self.tree.child_start[block_of - self.tree.row_count]
        sizes = self.tree.child_start[block_of - self.tree.row_count + 1] - starts

        def node_of(local: Ints) -> Ints:
            inside = (local >= 0) & (local < sizes)
            child = self.tree.child_index[np.where(inside, starts + local, 0)]
            return np.where(inside, child, np.where(local < 0, -1, block_of))

        return {
            "segments": ends,
            "segment_kind": np.concatenate([route.kind for route in routes]),
            "segment_arrow": np.concatenate([route.arrow for route in routes]),
            "segment_source": node_of(np.concatenate([route.source for route in routes]).astype(np.int64)),
            "segment_target": node_of(np.concatenate([route.target for route in routes]).astype(np.int64)),
            "segment_rank": np.concatenate([route.rank for route in routes]),
            "segment_block": block_of,
        }


def _port_numbers(links: Links, at: int) -> dict[int, int]:
    """Port through which each row's value passes; values beyond the limit share the last port."""
    rows = sorted(set(links.of(at)[2]))
    return {row: min(port, MAX_PORTS - 1) for port, row in enumerate(rows)}


def _port_count(numbers: dict[int, int]) -> int:
    return min(len(numbers), MAX_PORTS)
