"""Horizontal coordinates in the manner of Brandes and Koepf (2001): four extreme alignments, then their median.

Widths differ from node to node, so blocks of aligned nodes are pushed apart by a longest path over the real
distances instead of the paper's classes.
"""

from __future__ import annotations

from itertools import pairwise

from ace_studio.gui.graph_layout.ordering import Chains

NODE_GAP = 26.0
CHAIN_GAP = 14.0


def place(chains: Chains, widths: list[float]) -> list[float]:
    """Centre of every node and point, from 0 to the right; neighbours in a layer never overlap."""
    layers = chains.layers
    count = len(chains.rank)
    if max(map(len, layers), default=0) <= 1:
        return [max(widths, default=0.0) / 2] * count
    conflicts = _conflicts(chains)
    preferred = [_preferred(side, chains.total) for side in (chains.up, chains.down)]
    candidates = []
    for upward in (False, True):
        for mirrored in (False, True):
            rows = [list(reversed(layer)) if mirrored else layer for layer in layers]
            if upward:
                rows.reverse()
            root = _align(rows, preferred[upward], conflicts=conflicts)
            xs = _compact(rows, root, gaps=_Gaps(widths, chains.total))
            candidates.append([-x for x in xs] if mirrored else xs)
    return _balance(candidates, widths)


class _Gaps:
    """The least distance between the centres of two neighbours."""

    def __init__(self, widths: list[float], total: int) -> None:
        self._widths = widths
        self._total = total

    def between(self, left: int, right: int) -> float:
        gap = NODE_GAP if left < self._total and right < self._total else CHAIN_GAP
        return (self._widths[left] + self._widths[right]) / 2 + gap


def _conflicts(chains: Chains) -> set[tuple[int, int]]:
    """Edges that cross a piece of a chain: the chain stays straight, they give way."""
    found = set()
    total = chains.total
    for upper, lower in pairwise(chains.layers):
        place_of = {node: at for at, node in enumerate(upper)}
        left, scanned = 0, 0
        for at, node in enumerate(lower):
            inner = _chain_above(node, chains) if node >= total else None
            if inner is None and at < len(lower) - 1:
                continue
            right = place_of[inner] if inner is not None else len(upper)
            for other in lower[scanned : at + 1]:
                for above in chains.up[other]:
                    crosses = not left <= place_of[above] <= right
                    if crosses and not (other >= total and above >= total):
                        found.add((above, other))
            left, scanned = right if inner is not None else left, at + 1
    return found


def _chain_above(node: int, chains: Chains) -> int | None:
    above = chains.up[node][0]
    return above if above >= chains.total else None


def _preferred(neighbours: list[list[int]], total: int) -> list[list[int]]:
    """Neighbours to stand in line with: real nodes rather than passing chains, so that the main flow is straight."""
    kept = []
    for node, near in enumerate(neighbours):
        real = [other for other in near if other < total]
        kept.append(real if real and node < total else near)
    return kept


def _align(rows: list[list[int]], neighbours: list[list[int]], *, conflicts: set[tuple[int, int]]) -> list[int]:
    """The root of the vertical line each node is aligned to."""
    count = len(neighbours)
    root = list(range(count))
    place_of = [0] * count
    for row in rows:
        for at, node in enumerate(row):
            place_of[node] = at
    for row in rows:
        reached = -1
        for node in row:
            near = sorted(neighbours[node], key=place_of.__getitem__)
            if not near:
                continue
            for middle in sorted({(len(near) - 1) // 2, len(near) // 2}):
                above = near[middle]
                pair_is_free = (above, node) not in conflicts and (node, above) not in conflicts
                if pair_is_free and reached < place_of[above]:
                    root[node] = root[above]
                    reached = place_of[above]
                    break
    return root


def _compact(rows: list[list[int]], root: list[int], *, gaps: _Gaps) -> list[float]:
    """Push the lines as far left as they go, then each as far right as its right neighbours allow."""
    count = len(root)
    after: list[dict[int, float]] = [{} for _ in range(count)]
    waiting_for = [0] * count
    for row in rows:
        for left, right in pairwise(row):
            first, second = root[left], root[right]
            gap = gaps.between(left, right)
            known = after[first].get(second)
            if known is None:
                waiting_for[second] += 1
                after[first][second] = gap
            elif gap > known:
                after[first][second] = gap
    xs = [0.0] * count
    order = [node for node in range(count) if root[node] == node and not waiting_for[node]]
    for line in order:
        for right, gap in after[line].items():
            xs[right] = max(xs[right], xs[line] + gap)
            waiting_for[right] -= 1
            if not waiting_for[right]:
                order.append(right)
    for line in reversed(order):
        if after[line]:
            xs[line] = max(xs[line], min(xs[right] - gap for right, gap in after[line].items()))
    return [xs[line] for line in root]


def _balance(candidates: list[list[float]], widths: list[float]) -> list[float]:
    """Shift the four candidates onto the narrowest and take the mean of the middle two for each node."""
    lows = [min(x - w / 2 for x, w in zip(xs, widths, strict=True)) for xs in candidates]
    highs = [max(x + w / 2 for x, w in zip(xs, widths, strict=True)) for xs in candidates]
    narrow = min(range(4), key=lambda at: highs[at] - lows[at])
    shifts = [lows[narrow] - lows[at] if at % 2 == 0 else highs[narrow] - highs[at] for at in range(4)]
    placed = []
    for values in zip(*candidates, strict=True):
        middle = sorted(x + shift for x, shift in zip(values, shifts, strict=True))
        placed.append((middle[1] + middle[2]) / 2)
    low = min(x - w / 2 for x, w in zip(placed, widths, strict=True))
    return [x - low for x in placed]
