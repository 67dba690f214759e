"""Horizontal coordinates after Brandes and Koepf (2001): four extreme alignments, then their median.

Widths differ from node to node, so blocks of aligned nodes are pushed apart by a longest path over the real
distances instead of the paper's classes.
"""

from itertools import pairwise

from ace_studio.gui.graph_layout.ordering import Chains

NODE_GAP = 26.0
CHAIN_GAP = 14.0


def place(chains: Chains, widths: list[float], *, layers: list[list[int]]) -> dict[int, float]:
    """Centre of every node and point of some neighbouring layers, from 0 to the right.

    Neighbours in a layer never overlap. Only edges within these layers count.
    """
    nodes = [node for layer in layers for node in layer]
    if max(map(len, layers), default=0) <= 1:
        middle = max((widths[node] for node in nodes), default=0.0) / 2
        return dict.fromkeys(nodes, middle)
    conflicts = _conflicts(chains, layers)
    candidates = []
    for upward in (False, True):
        neighbours = chains.down if upward else chains.up
        for mirrored in (False, True):
            rows = [list(reversed(layer)) if mirrored else layer for layer in layers]
            if upward:
                rows.reverse()
            root = _align(rows, neighbours, conflicts=conflicts, total=chains.total)
            xs = _compact(rows, root, gaps=_Gaps(widths, chains.total))
            candidates.append([-xs[node] if mirrored else xs[node] for node in nodes])
    return dict(zip(nodes, _balance(candidates, [widths[node] for node in nodes]), strict=True))


class _Gaps:
    """The least distance between the centres of two neighbours."""

    def __init__(self, widths: list[float], total: int) -> None:
        self._widths = widths
        self._total = total

    def between(self, left: int, right: int) -> float:
        gap = NODE_GAP if left < self._total and right < self._total else CHAIN_GAP
        return (self._widths[left] + self._widths[right]) / 2 + gap


def _conflicts(chains: Chains, layers: list[list[int]]) -> set[tuple[int, int]]:
    """Edges that cross a segment of a chain; they bend so that the chain stays straight."""
    found = set()
    total = chains.total
    for upper, lower in pairwise(layers):
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


def _align(
    rows: list[list[int]], neighbours: list[list[int]], *, conflicts: set[tuple[int, int]], total: int
) -> dict[int, int]:
    """The root of the vertical line each node is aligned to.

    Nodes stand in line with real neighbours rather than with passing chains, so that the main flow is straight.
    """
    root = {node: node for row in rows for node in row}
    for before, row in pairwise(rows):
        place_of = {node: at for at, node in enumerate(before)}
        reached = -1
        for node in row:
            near = neighbours[node]
            if len(near) > 1:
                real = [other for other in near if other < total] if node < total else []
                near = sorted(real or near, key=place_of.__getitem__)
            for middle in sorted({(len(near) - 1) // 2, len(near) // 2}) if near else ():
                above = near[middle]
                pair_is_free = not conflicts or ((above, node) not in conflicts and (node, above) not in conflicts)
                if pair_is_free and reached < place_of[above]:
                    root[node] = root[above]
                    reached = place_of[above]
                    break
    return root


def _compact(rows: list[list[int]], root: dict[int, int], *, gaps: _Gaps) -> dict[int, float]:
    """Push the lines as far left as they go, then each as far right as its right neighbours allow."""
    lines = [node for row in rows for node in row if root[node] == node]
    after: dict[int, dict[int, float]] = {line: {} for line in lines}
    waiting_for = dict.fromkeys(lines, 0)
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
    xs = dict.fromkeys(lines, 0.0)
    order = [line for line in lines if not waiting_for[line]]
    for line in order:
        for right, gap in after[line].items():
            xs[right] = max(xs[right], xs[line] + gap)
            waiting_for[right] -= 1
            if not waiting_for[right]:
                order.append(right)
    for line in reversed(order):
        if after[line]:
            xs[line] = max(xs[line], min(xs[right] - gap for right, gap in after[line].items()))
    return {node: xs[line] for node, line in root.items()}


def _balance(candidates: list[list[float]], widths: list[float]) -> list[float]:
    """Shift the candidates onto the narrowest and take the mean of the middle two for each node."""
    lows = [min(x - w / 2 for x, w in zip(xs, widths, strict=True)) for xs in candidates]
    highs = [max(x + w / 2 for x, w in zip(xs, widths, strict=True)) for xs in candidates]
    narrow = min(range(len(candidates)), key=lambda at: highs[at] - lows[at])
    shifts = [lows[narrow] - lows[at] if at % 2 == 0 else highs[narrow] - highs[at] for at in range(len(candidates))]
    placed = []
    for values in zip(*candidates, strict=True):
        middle = sorted(x + shift for x, shift in zip(values, shifts, strict=True))
        half = len(middle) // 2
        placed.append((middle[half - 1] + middle[half]) / 2)
    low = min(x - w / 2 for x, w in zip(placed, widths, strict=True))
    return [x - low for x in placed]
