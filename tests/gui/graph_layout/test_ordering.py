"""The order of nodes within each rank: shared chains for long edges, then barycentre sweeps."""

import random
from itertools import combinations, pairwise

from ace_studio.gui.graph_layout import SegmentKind
from ace_studio.gui.graph_layout.layered import BlockProblem, Edge, lay_out_block
from ace_studio.gui.graph_layout.ordering import build_chains, order_layers
from ace_studio.gui.graph_layout.ranks import Ranks


def test_an_edge_too_long_to_draw_becomes_a_stub_at_both_ends():
    count = 6000
    chain = [Edge(source=at, target=at + 1) for at in range(count - 1)]
    far = [Edge(source=at, target=count - 1 - at) for at in range(40)]
    layout = lay_out_block(BlockProblem(widths=(96.0,) * count, heights=(46.0,) * count, edges=tuple(chain + far)))
    assert (layout.routes.kind == SegmentKind.STUB).sum() % 2 == 0
    assert (layout.routes.kind == SegmentKind.STUB).any()


def random_ranks(seed):
    """Four ranks of six nodes, and edges from each rank to the next."""
    chance = random.Random(seed)
    down = [sorted(6 * rank + 6 + below for below in chance.sample(range(6), 2)) for rank in range(3) for _ in range(6)]
    return Ranks(rank=[at // 6 for at in range(24)], down=[*down, *([] for _ in range(6))], turned=frozenset())


def crossings_after(ranks, *, sweeps):
    chains = build_chains(ranks, total=24, allowance=1000)
    order_layers(chains, sweeps=sweeps)
    place = {node: at for layer in chains.layers for at, node in enumerate(layer)}
    return sum(
        (place[one] - place[other]) * (place[end] - place[another]) < 0
        for upper, _ in pairwise(chains.layers)
        for one, other in combinations(upper, 2)
        for end in chains.down[one]
        for another in chains.down[other]
    )


def test_sorting_leaves_fewer_crossings_and_never_more():
    pairs = [(crossings_after(random_ranks(seed), sweeps=0), crossings_after(random_ranks(seed), sweeps=6))
             for seed in range(8)]  # fmt: skip
    assert all(after <= before for before, after in pairs)
    assert sum(after for _, after in pairs) < 0.8 * sum(before for before, _ in pairs)
