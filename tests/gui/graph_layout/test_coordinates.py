"""Horizontal coordinates of the nodes of a block."""

from itertools import pairwise

import pytest

from ace_studio.gui.graph_layout.coordinates import NODE_GAP, place
from ace_studio.gui.graph_layout.ordering import build_chains, order_layers
from ace_studio.gui.graph_layout.ranks import rank_nodes


def placed(count, edges, widths):
    ranks = rank_nodes(count, entering=0, leaving=0, edges=edges)
    chains = build_chains(ranks, total=count, allowance=1000)
    order_layers(chains)
    widths = [*widths, *[0.0] * (len(chains.rank) - count)]
    return chains, place(chains, widths, layers=chains.layers)


def test_a_chain_of_nodes_is_a_straight_line():
    _, x = placed(4, [(0, 1), (1, 2), (2, 3)], [96.0, 208.0, 96.0, 144.0])
    assert len(set(x.values())) == 1


def test_neighbours_keep_their_distance():
    chains, x = placed(4, [(0, 1), (0, 2), (0, 3)], [96.0, 208.0, 96.0, 144.0])
    row = chains.layers[1]
    widths = [96.0, 208.0, 96.0, 144.0]
    for left, right in pairwise(row):
        assert x[right] - x[left] >= (widths[left] + widths[right]) / 2 + NODE_GAP - 1e-6


def test_a_reader_stands_in_the_middle_of_what_it_reads():
    _, x = placed(3, [(0, 2), (1, 2)], [96.0, 96.0, 96.0])
    assert x[2] == pytest.approx((x[0] + x[1]) / 2)
