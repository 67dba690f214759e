"""Edges in the blocks in which they are drawn."""

import numpy as np

from ace_studio.gui.graph_layout.hierarchy import build_hierarchy
from ace_studio.gui.graph_layout.lifting import lift_edges
from tests.gui.graph_tables import table_of

TABLE = table_of(
    [("a", "aten.add.Tensor", "left"), ("b", "aten.mul.Tensor", "left"), ("c", "aten.add.Tensor", "right"),
     ("d", "aten.mul.Tensor", "right")],
    edges=[(0, 1), (1, 2), (2, 3)],
)  # fmt: skip


def lifted():
    tree = build_hierarchy(TABLE)
    source, target = (np.array(column, dtype=np.int64) for column in (TABLE.edge_source, TABLE.edge_target))
    return tree, lift_edges(tree, source, target)


def test_an_edge_inside_a_block_is_drawn_there():
    tree, edges = lifted()
    left = tree.block_of_path("left") - tree.root
    assert edges.inner.of(left) == ([0], [1], [0])


def test_an_edge_between_blocks_joins_them_in_their_parent_and_passes_a_port_of_each():
    tree, edges = lifted()
    left, right = tree.block_of_path("left"), tree.block_of_path("right")
    assert edges.inner.of(0) == ([left], [right], [1])
    assert edges.leaving.of(left - tree.root) == ([1], [1], [1])
    assert edges.entering.of(right - tree.root) == ([2], [2], [1])


def test_a_value_read_twice_by_a_block_is_one_line():
    table = table_of(
        [("x", "aten.add.Tensor", ""), ("a", "aten.add.Tensor", "m"), ("b", "aten.mul.Tensor", "m")],
        edges=[(0, 1), (0, 2)],
    )
    tree = build_hierarchy(table)
    edges = lift_edges(tree, np.array([0, 0]), np.array([1, 2]))
    assert len(edges.inner.of(0)[0]) == 1
