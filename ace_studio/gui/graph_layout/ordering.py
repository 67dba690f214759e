"""The order of nodes within each rank: shared chains for long edges, then barycentre sweeps."""

from bisect import bisect_right, insort
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ace_studio.gui.graph_layout.ranks import Ranks


@dataclass(frozen=True, kw_only=True)
class Chains:
    """Nodes and the points of chains, with edges only between neighbouring ranks."""

    total: int
    """Real nodes; points of chains follow."""
    rank: list[int]
    down: list[list[int]]
    up: list[list[int]]
    layers: list[list[int]]
    """Nodes of each rank from left to right; `order_layers` sorts it in place."""
    point: dict[tuple[int, int], int]
    """(source, rank) -> the point at which the source's chain passes that rank."""
    cut: frozenset[tuple[int, int]]
    """(upper, lower) edges that are too long to be drawn whole."""
    turned: frozenset[tuple[int, int]]


def build_chains(ranks: Ranks, *, total: int, allowance: int) -> Chains:
    """Insert one shared chain of points per source that has readers more than one rank below."""
    rank = list(ranks.rank)
    longest = _longest_span(ranks, allowance)
    down: list[list[int]] = [[] for _ in range(total)]
    point: dict[tuple[int, int], int] = {}
    cut = set()
    for source, readers in enumerate(ranks.down):
        for reader in readers:
            if rank[reader] - rank[source] > longest:
                cut.add((source, reader))
                continue
            above = source
            for level in range(rank[source] + 1, rank[reader]):
                at = point.get((source, level))
                if at is None:
                    at = point[source, level] = len(rank)
                    rank.append(level)
                    down.append([])
                    down[above].append(at)
                above = at
            down[above].append(reader)
    up: list[list[int]] = [[] for _ in rank]
    for node, lower_nodes in enumerate(down):
        for lower in lower_nodes:
            up[lower].append(node)
    layers: list[list[int]] = [[] for _ in range(max(rank, default=0) + 1)]
    for node, level in enumerate(rank):
        layers[level].append(node)
    return Chains(
        total=total, rank=rank, down=down, up=up, layers=layers, point=point, cut=frozenset(cut), turned=ranks.turned
    )


def _longest_span(ranks: Ranks, allowance: int) -> int:
    """Largest number of ranks an edge may cross so that all chains together keep to the allowance."""
    rank = ranks.rank
    longest = max(rank, default=0) + 1
    if (
        sum(max(map(rank.__getitem__, lower)) - rank[node] for node, lower in enumerate(ranks.down) if lower)
        <= allowance
    ):
        return longest
    sources = np.repeat(np.arange(len(ranks.down)), [len(lower) for lower in ranks.down])
    numbers = np.array(rank)
    spans = numbers[[reader for lower in ranks.down for reader in lower]] - numbers[sources]
    while longest > 2:
        reach = np.ones(len(rank), dtype=np.int64)
        kept = spans <= longest
        np.maximum.at(reach, sources[kept], spans[kept])
        if (reach - 1).sum() <= allowance:
            break
        longest //= 2
    return longest


def order_layers(chains: Chains, *, sweeps: int = 6) -> None:
    """Sort every layer in place so that few edges cross; same input, same order."""
    layers = chains.layers
    if max(map(len, layers), default=0) <= 1:
        return
    position = [0.0] * len(chains.rank)
    _depth_first(chains)
    for layer in layers:
        _number(layer, position)
    fewest, best = _crossings(chains, position), [list(layer) for layer in layers]
    for sweep in range(sweeps):
        if fewest == 0:
            break
        _sweep(chains, position, downward=sweep % 2 == 0)
        crossings = _crossings(chains, position)
        if crossings < fewest:
            fewest, best = crossings, [list(layer) for layer in layers]
    for layer, kept in zip(layers, best, strict=True):
        layer[:] = kept


def _sweep(chains: Chains, position: list[float], *, downward: bool) -> None:
    """Sort layer after layer by the neighbours in the one before."""
    if downward:
        for layer in chains.layers[1:]:
            _sort_by(layer, chains.up, position=position)
    else:
        for layer in reversed(chains.layers[:-1]):
            _sort_by(layer, chains.down, position=position)


def _depth_first(chains: Chains) -> None:
    """Start order: as a walk from the top meets the nodes, so that trees start without crossings."""
    seen = [False] * len(chains.rank)
    met: list[list[int]] = [[] for _ in chains.layers]
    starts = [node for layer in chains.layers for node in layer if not chains.up[node]]
    for start in starts:
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if seen[node]:
                continue
            seen[node] = True
            met[chains.rank[node]].append(node)
            waiting.extend(reversed(chains.down[node]))
    for layer, order in zip(chains.layers, met, strict=True):
        layer[:] = order


def _number(layer: list[int], position: list[float]) -> None:
    for place, node in enumerate(layer):
        position[node] = float(place)


def _sort_by(layer: list[int], neighbours: list[list[int]], *, position: list[float]) -> None:
    """Sort a layer by the mean place of each node's neighbours; a node without neighbours keeps its place."""
    if len(layer) > 1:
        keys = {}
        for node in layer:
            near = neighbours[node]
            keys[node] = sum(position[other] for other in near) / len(near) if near else position[node]
        layer.sort(key=lambda node: (keys[node], position[node]))
    _number(layer, position)


def _crossings(chains: Chains, position: list[float]) -> int:
    """How many pairs of edges cross."""
    crossings = 0
    for layer, below in pairwise(chains.layers):
        if len(layer) < 2 or len(below) < 2:
            continue
        ends: list[float] = []
        for node in layer:
            places = sorted(position[lower] for lower in chains.down[node])
            for place in places:
                crossings += len(ends) - bisect_right(ends, place)
            for place in places:
                insort(ends, place)
    return crossings
