"""Ranks: which nodes of a block stand side by side."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """The rank of every node, and the edges turned so that each points down."""

    rank: list[int]
    down: list[list[int]]
    """[nodes] nodes that each node points to, turned edges included, without repeats."""
    turned: frozenset[tuple[int, int]]
    """(upper, lower) of edges that really run upwards."""


def rank_nodes(children: int, *, entering: int, leaving: int, edges: list[tuple[int, int]]) -> Ranks:
    """Longest-path ranks; nodes that nothing feeds stand right above what reads them.

    Children come in execution order, so an edge to an earlier child closes a cycle and is turned around.
    """
    total = children + entering + leaving
    down: list[set[int]] = [set() for _ in range(total)]
    up_count = [0] * total
    turned = set()
    for source, target in edges:
        upper, lower = source, target
        if target < children and source < children and target < source:
            upper, lower = target, source
            turned.add((upper, lower))
        if lower not in down[upper]:
            down[upper].add(lower)
            up_count[lower] += 1
    rank = [1 if entering else 0] * total
    bottom_ports = range(children + entering, total)
    for port in range(children, children + entering):
        rank[port] = 0
    for node in range(children):
        for lower in down[node]:
            if rank[lower] <= rank[node]:
                rank[lower] = rank[node] + 1
    last = max(rank[:children], default=0)
    for port in bottom_ports:
        rank[port] = last + 1
    _sink(children, rank, down=down, up_count=up_count)
    return Ranks(rank=rank, down=[sorted(lower) for lower in down], turned=frozenset(turned))


def _sink(children: int, rank: list[int], *, down: list[set[int]], up_count: list[int]) -> None:
    """Move nodes that depend on nothing else down to their readers.

    A node floats if every node above it floats and feeds only it; the loop goes from readers to sources.
    """
    grounded = [count > 0 for count in up_count]
    for node in range(children):
        if not grounded[node] and len(down[node]) == 1:
            (reader,) = down[node]
            up_count[reader] -= 1
            if reader < children and up_count[reader] == 0:
                grounded[reader] = False
    for node in range(children - 1, -1, -1):
        if down[node] and not grounded[node]:
            rank[node] = min(rank[lower] for lower in down[node]) - 1
