"""The layout of one block alone: ranks from top to bottom, few crossings, straight long edges.

Nodes 0..k-1 are the block's children in execution order. Values that enter or leave the block do so through ports,
which stand above the first and below the last rank. Values with many readers travel along one shared chain.
Pure Python lists on purpose: most blocks have fewer than 30 nodes, where numpy's call overhead dominates.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_layout.ordering import build_chains, order_layers
from ace_studio.gui.graph_layout.ranks import rank_nodes
from ace_studio.gui.graph_layout.routes import Routes, Sheet, no_routes

_Floats = npt.NDArray[np.float64]

PORT_WIDTH = 10.0
CHAIN_ALLOWANCE = 4000
"""A chain has one point per rank it passes; beyond one per node and these, the longest edges become stubs."""


@dataclass(frozen=True, kw_only=True)
class Edge:
    """One line to draw between two nodes of a block."""

    source: int
    """Index of a child, or ``children + port`` for a port at the top."""
    target: int
    """Index of a child, or ``children + ports at the top + port`` for a port at the bottom."""
    source_offset: float = 0.0
    """Where the line starts, from the middle of the source."""
    target_offset: float = 0.0
    """Where the line ends, from the middle of the target."""


@dataclass(frozen=True, kw_only=True)
class BlockProblem:
    """One block to lay out."""

    widths: tuple[float, ...]
    heights: tuple[float, ...]
    edges: tuple[Edge, ...]
    entering: int = 0
    leaving: int = 0
    may_fold: bool = True
    """Whether a long narrow picture may be cut into columns."""


@dataclass(frozen=True, kw_only=True)
class BlockLayout:
    """The finished layout of one block; coordinates start at its upper left corner."""

    x: _Floats
    """[children] left edge."""
    y: _Floats
    """[children] upper edge."""
    rank: tuple[int, ...]
    """[children] 0 at the top."""
    columns: int
    width: float
    height: float
    entering_x: tuple[float, ...]
    leaving_x: tuple[float, ...]
    routes: Routes


def lay_out_block(problem: BlockProblem) -> BlockLayout:
    """Lay out one block.

    Edges point down except those against execution order, which exist where closed blocks form a cycle.
    """
    children = len(problem.widths)
    total = children + problem.entering + problem.leaving
    if not total:
        return _empty()
    pairs = [(edge.source, edge.target) for edge in problem.edges]
    ranks = rank_nodes(children, entering=problem.entering, leaving=problem.leaving, edges=pairs)
    chains = build_chains(ranks, total=total, allowance=total + CHAIN_ALLOWANCE)
    order_layers(chains)
    widths = list(problem.widths) + [PORT_WIDTH] * (problem.entering + problem.leaving)
    widths += [0.0] * (len(chains.rank) - total)
    sheet = Sheet(
        problem_widths=widths,
        heights=list(problem.heights),
        chains=chains,
        children=children,
        may_fold=problem.may_fold,
    )
    sheet.stack_bands([(e.source_offset, e.target_offset) for e in problem.edges])
    drawn = sheet.route([(e.source, e.target, e.source_offset, e.target_offset) for e in problem.edges])
    left = np.array([sheet.center[node] - widths[node] / 2 for node in range(children)])
    ports = [sheet.center[node] for node in range(children, total)]
    return BlockLayout(
        x=left,
        y=np.array([sheet.top[node] for node in range(children)]),
        rank=tuple(chains.rank[:children]),
        columns=sheet.column_count,
        width=sheet.width,
        height=sheet.height,
        entering_x=tuple(ports[: problem.entering]),
        leaving_x=tuple(ports[problem.entering :]),
        routes=drawn,
    )


def _empty() -> BlockLayout:
    nothing = np.zeros(0)
    return BlockLayout(
        x=nothing, y=nothing, rank=(), columns=1, width=0.0, height=0.0, entering_x=(), leaving_x=(), routes=no_routes()
    )
