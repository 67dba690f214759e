"""Ranks of the nodes of a block."""

from ace_studio.gui.graph_layout.ranks import rank_nodes


def test_a_node_stands_below_everything_that_feeds_it():
    ranks = rank_nodes(3, entering=0, leaving=0, edges=[(0, 1), (1, 2), (0, 2)])
    assert ranks.rank == [0, 1, 2]
    assert ranks.down == [[1, 2], [2], []]


def test_an_edge_against_execution_order_is_turned():
    ranks = rank_nodes(2, entering=0, leaving=0, edges=[(1, 0)])
    assert ranks.rank == [0, 1]
    assert ranks.turned == frozenset({(0, 1)})


def test_ports_stand_above_the_first_and_below_the_last_rank():
    ranks = rank_nodes(2, entering=1, leaving=1, edges=[(2, 0), (0, 1), (1, 3)])
    assert ranks.rank == [1, 2, 0, 3]


def test_a_node_that_nothing_feeds_stands_right_above_its_reader():
    late = rank_nodes(4, entering=1, leaving=0, edges=[(4, 1), (1, 2), (2, 3), (0, 3)])
    assert late.rank[0] == late.rank[3] - 1
