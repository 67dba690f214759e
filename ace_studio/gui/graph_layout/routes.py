"""Bands, columns and the segments of lines: from ranks and centres to a drawable picture of one block.

Every rank is a band. Within bands lines run vertically, so they never pass through a node; they bend in the gaps
between bands. A long narrow picture is cut into columns; lines that go on in the next column climb between the two.
"""

import math
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_layout.coordinates import CHAIN_GAP, place
from ace_studio.gui.graph_layout.ordering import Chains

GAP_MIN = 30.0
GAP_MAX = 84.0
GAP_PER_SHIFT = 0.09
"""Gaps grow with the widest sideways step in them, so that curves do not become flat."""
STUB_LENGTH = 16.0
ARRIVAL = 9.0
"""A curve ends straight for this long, so that its arrowhead sits on it."""
FOLD_FROM_HEIGHT = 1500.0
FOLD_FROM_RATIO = 2.2
FOLDED_RATIO = 1.6
COLUMN_SHARES = (0.3, 0.45, 0.6, 0.75, 0.9, 1.0, 1.2, 1.5, 2.0)
"""Numbers of columns to try, as shares of the number that suits if all bands are low."""
COLUMN_GAP = 36.0
LANE = 9.0
MAX_LANES = 16


class SegmentKind(IntEnum):
    """How a segment of a line is drawn."""

    CURVE = 0
    """Leaves and arrives vertically."""
    STRAIGHT = 1
    STUB = 2
    """The rest of the line is left out because it would be too long."""


@dataclass(frozen=True, kw_only=True)
class Routes:
    """Segments of lines as columns, in coordinates of the block."""

    ends: npt.NDArray[np.float64]
    """[segments, 4] x and y of the start, x and y of the end."""
    kind: npt.NDArray[np.uint8]
    """[segments] `SegmentKind`."""
    arrow: npt.NDArray[np.int8]
    """[segments] 1 an arrowhead at the end, -1 at the start, 0 none."""
    source: npt.NDArray[np.int32]
    """[segments] child whose value this is, or ``children + port``."""
    target: npt.NDArray[np.int32]
    """[segments] node that the segment reaches; -1 where several edges share it."""
    rank: npt.NDArray[np.int32]
    """[segments] rank of the upper end."""


def no_routes() -> Routes:
    """Routes of a block without edges."""
    return _Segments().finished()


@dataclass
class _Segments:
    ends: list[tuple[float, float, float, float]] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    arrow: list[int] = field(default_factory=list)
    owner: list[tuple[int, int, int]] = field(default_factory=list)

    def add(
        self,
        ends: tuple[float, float, float, float],
        owner: tuple[int, int, int],
        *,
        kind: SegmentKind = SegmentKind.CURVE,
        arrow: int = 0,
    ) -> None:
        if ends[0] == ends[2] and ends[1] == ends[3] and not arrow:
            return
        self.ends.append(ends)
        self.kind.append(SegmentKind.STRAIGHT if ends[0] == ends[2] and kind is SegmentKind.CURVE else kind)
        self.arrow.append(arrow)
        self.owner.append(owner)

    def finished(self) -> Routes:
        owner = np.array(self.owner, dtype=np.int32).reshape(-1, 3)
        return Routes(
            ends=np.array(self.ends, dtype=np.float64).reshape(-1, 4),
            kind=np.array(self.kind, dtype=np.uint8),
            arrow=np.array(self.arrow, dtype=np.int8),
            source=owner[:, 0],
            target=owner[:, 1],
            rank=owner[:, 2],
        )


@dataclass(kw_only=True)
class Sheet:
    """The sheet on which one block is drawn; filled by `stack_bands`, then by `route`."""

    problem_widths: list[float]
    heights: list[float]
    chains: Chains
    children: int
    may_fold: bool
    center: list[float] = field(default_factory=list)
    top: list[float] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    column_count: int = 1

    def stack_bands(self, offsets: list[tuple[float, float]]) -> None:
        """Find the upper and lower end of every band, and cut the bands into columns if the picture is too tall.

        Args:
            offsets: Where each edge starts and ends beside the middle of its nodes.
        """
        layers = self.chains.layers
        tall = [max((self._height(node) for node in layer), default=0.0) for layer in layers]
        widest = max((abs(start) + abs(end) for start, end in offsets), default=0.0)
        self._breaks = self._choose_breaks(tall) if self.may_fold else []
        starts = [0, *(rank + 1 for rank in self._breaks), len(layers)]
        self.center = [0.0] * len(self.chains.rank)
        for first, end in pairwise(starts):
            for node, x in place(self.chains, self.problem_widths, layers=layers[first:end]).items():
                self.center[node] = x
        gaps = [self._gap_below(rank, widest) for rank in range(len(layers) - 1)]
        self._band_top = [0.0] * len(layers)
        self._band_height = tall
        self._lanes = {rank: self._crossing(rank) for rank in self._breaks}
        self._gutter = [0.0] * (len(self._breaks) + 1)
        self._place_columns(starts, gaps)
        self.top = [
            self._band_top[self.chains.rank[node]] + (tall[self.chains.rank[node]] - self._height(node)) / 2
            for node in range(len(self.chains.rank))
        ]

    def _height(self, node: int) -> float:
        return self.heights[node] if node < self.children else 0.0

    def _gap_below(self, rank: int, widest_offset: float) -> float:
        """Height of the gap below a band."""
        center = self.center
        shift = 0.0
        for node in self.chains.layers[rank]:
            for lower in self.chains.down[node]:
                shift = max(shift, abs(center[node] - center[lower]))
        if min(self.chains.layers[rank], default=0) < self.children:
            shift += widest_offset
        return min(GAP_MAX, max(GAP_MIN, GAP_PER_SHIFT * shift))

    def _crossing(self, rank: int) -> list[int]:
        """Nodes and points of a band with lines to the next band."""
        return [node for node in self.chains.layers[rank] if self.chains.down[node]]

    def _choose_breaks(self, tall: list[float]) -> list[int]:
        """Ranks after which a new column starts, so that the picture is about as wide as a screen."""
        gap = GAP_MIN * 1.2
        height = sum(tall) + gap * len(tall)
        rooms = (sum(self.problem_widths[node] + CHAIN_GAP for node in layer) for layer in self.chains.layers)
        width = max(rooms, default=0.0)
        if height < FOLD_FROM_HEIGHT or height < FOLD_FROM_RATIO * width:
            return []
        ideal = math.sqrt(FOLDED_RATIO * height / (width + COLUMN_GAP))
        best, least = [], math.inf
        for columns in sorted({min(len(tall), max(1, round(ideal * share))) for share in COLUMN_SHARES}):
            tallest = _least_height(tall, gap, columns=columns)
            breaks = _fill(tall, gap, limit=tallest)
            shape = (len(breaks) + 1) * (width + COLUMN_GAP) / tallest
            if abs(math.log(shape / FOLDED_RATIO)) < least - 1e-9:
                best, least = breaks, abs(math.log(shape / FOLDED_RATIO))
        return self._fewer_crossings(best, tall)

    def _fewer_crossings(self, breaks: list[int], tall: list[float]) -> list[int]:
        """Move each break up over a few small bands if fewer lines cross there."""
        moved: list[int] = []
        slack = sum(tall) / (len(breaks) + 1) * 0.15
        for rank in breaks:
            above, near = 0.0, [rank]
            while above <= slack and near[-1] - 1 > (moved[-1] if moved else 0) and tall[near[-1] - 1]:
                above += tall[near[-1]]
                near.append(near[-1] - 1)
            near = [at for at in near[: max(1, len(near) - 1)] if not moved or at > moved[-1]]
            moved.append(min(near, key=lambda at: (len(self._crossing(at)), -at)))
        return moved

    def _place_columns(self, starts: list[int], gaps: list[float]) -> None:
        """Put the columns beside each other; lines between them climb in the gutter between."""
        left = 0.0
        for column, (first, end) in enumerate(pairwise(starts)):
            nodes = [node for layer in self.chains.layers[first:end] for node in layer]
            low = min((self.center[node] - self.problem_widths[node] / 2 for node in nodes), default=0.0)
            high = max((self.center[node] + self.problem_widths[node] / 2 for node in nodes), default=0.0)
            if column:
                lanes = self._lane_count(self._breaks[column - 1])
                self._gutter[column] = left + COLUMN_GAP / 2
                left += COLUMN_GAP + LANE * (lanes - 1)
            for node in nodes:
                self.center[node] += left - low
            left += high - low
            y = self._lane_room(self._breaks[column - 1]) if column else 0.0
            for rank in range(first, end):
                self._band_top[rank] = y
                y += self._band_height[rank] + (gaps[rank] if rank + 1 < end else 0.0)
            if column < len(self._breaks):
                y += self._lane_room(self._breaks[column])
            self.height = max(self.height, y)
        self.width = left
        self.column_count = len(starts) - 1

    def _lane_count(self, rank: int) -> int:
        return max(1, min(len(self._lanes[rank]), MAX_LANES))

    def _lane_room(self, rank: int) -> float:
        return GAP_MIN * 0.7 + LANE * self._lane_count(rank)

    def _bottom(self, rank: int) -> float:
        return self._band_top[rank] + self._band_height[rank]

    def route(self, edges: list[tuple[int, int, float, float]]) -> Routes:
        """The segments of all lines. Each edge: source, target, and where it starts and ends beside their middles."""
        segments = _Segments()
        drawn: set[tuple[object, ...]] = set()
        for source, target, source_offset, target_offset in edges:
            upper, lower = source, target
            upper_offset, lower_offset, arrow = source_offset, target_offset, 1
            if (target, source) in self.chains.turned and source > target:
                upper, lower, arrow = target, source, -1
                upper_offset, lower_offset = target_offset, source_offset
            if lower >= self.children:
                arrow = 0
            ends = (self.center[upper] + upper_offset, self.center[lower] + lower_offset)
            if (upper, lower) in self.chains.cut:
                self._stubs(segments, (upper, lower), ends=ends, arrow=arrow)
            else:
                self._line(segments, (upper, lower), ends=ends, arrow=arrow, drawn=drawn)
        return segments.finished()

    def _stubs(self, segments: _Segments, pair: tuple[int, int], *, ends: tuple[float, float], arrow: int) -> None:
        upper, lower = pair
        rank_up, rank_low = self.chains.rank[upper], self.chains.rank[lower]
        leave, arrive = self.top[upper] + self._height(upper), self.top[lower]
        owner = (upper, lower, rank_up)
        first = (ends[0], leave, ends[0], leave + STUB_LENGTH)
        segments.add(first, owner, kind=SegmentKind.STUB, arrow=min(arrow, 0))
        last = (ends[1], arrive - STUB_LENGTH, ends[1], arrive)
        segments.add(last, (upper, lower, rank_low - 1), kind=SegmentKind.STUB, arrow=max(arrow, 0))

    def _line(
        self,
        segments: _Segments,
        pair: tuple[int, int],
        *,
        ends: tuple[float, float],
        arrow: int,
        drawn: set[tuple[object, ...]],
    ) -> None:
        """One edge from node to node; parts of the chain that another edge drew already are left out."""
        upper, lower = pair
        rank, last_rank = self.chains.rank[upper], self.chains.rank[lower]
        x, y = ends[0], self.top[upper] + self._height(upper)
        first = True
        while rank < last_rank:
            final = rank + 1 == last_rank
            next_x = ends[1] if final else self.center[self.chains.point[upper, rank + 1]]
            shared = not final
            key = (upper, rank, (ends[0], arrow < 0) if first else None)
            if not (shared and key in drawn):
                owner = (upper, -1 if shared else lower, rank)
                self._leave_band(segments, (x, y), owner, rank=rank, arrow=min(arrow, 0) if first else 0)
                self._cross_gap(segments, (x, next_x), owner, rank=rank)
                arrive = self.top[lower] if final else self._bottom(rank + 1)
                down = (next_x, self._band_top[rank + 1], next_x, arrive)
                segments.add(down, owner, kind=SegmentKind.STRAIGHT, arrow=max(arrow, 0) if final else 0)
                if shared:
                    drawn.add(key)
            x, y = next_x, self._bottom(rank + 1)
            first = False
            rank += 1
        if lower >= self.children:
            segments.add((x, y, x, self.height), (upper, lower, rank), kind=SegmentKind.STRAIGHT)

    def _leave_band(
        self, segments: _Segments, start: tuple[float, float], owner: tuple[int, int, int], *, rank: int, arrow: int
    ) -> None:
        x, y = start
        segments.add((x, y, x, self._bottom(rank)), owner, kind=SegmentKind.STRAIGHT, arrow=arrow)

    def _cross_gap(
        self, segments: _Segments, xs: tuple[float, float], owner: tuple[int, int, int], *, rank: int
    ) -> None:
        """From the lower end of a band to the upper end of the next, which may be in the next column."""
        start, end = xs
        y, next_y = self._bottom(rank), self._band_top[rank + 1]
        if rank not in self._lanes:
            last = ARRIVAL if owner[1] >= 0 and start != end else 0.0
            segments.add((start, y, end, next_y - last), owner)
            segments.add((end, next_y - last, end, next_y), owner)
            return
        column = self._breaks.index(rank) + 1
        above = owner[0] if self.chains.rank[owner[0]] == rank else self.chains.point[owner[0], rank]
        lane = self._lanes[rank].index(above) % MAX_LANES
        turn = y + GAP_MIN * 0.35 + LANE * (self._lane_count(rank) - lane)
        over = next_y - GAP_MIN * 0.35 - LANE * (self._lane_count(rank) - lane)
        gutter = self._gutter[column] + LANE * (self._lane_count(rank) - 1 - lane)
        corners = [(start, y), (start, turn), (gutter, turn), (gutter, over), (end, over), (end, next_y)]
        for (x0, y0), (x1, y1) in pairwise(corners):
            segments.add((x0, y0, x1, y1), owner, kind=SegmentKind.STRAIGHT)


def _fill(tall: list[float], gap: float, *, limit: float) -> list[int]:
    """Fill columns of a given height from the first band on; returns the last rank of each column but the last."""
    breaks, height, has_nodes = [], 0.0, False
    for rank, band in enumerate(tall):
        # Bands without height are rows of ports; they get no column of their own.
        if has_nodes and band and height + band > limit:
            breaks.append(rank - 1)
            height, has_nodes = 0.0, False
        height += band + gap
        has_nodes = has_nodes or band > 0
    return breaks


def _least_height(tall: list[float], gap: float, *, columns: int) -> float:
    """Least height of the tallest of so many columns, to within a hundredth."""
    low, high = max(tall), sum(tall) + gap * len(tall)
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        if len(_fill(tall, gap, limit=middle)) < columns:
            high = middle
        else:
            low = middle
    return high
