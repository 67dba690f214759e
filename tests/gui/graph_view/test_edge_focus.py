"""Highlighted edges."""

from __future__ import annotations

import numpy as np

from ace_studio.gui.graph_layout import Arrangement
from ace_studio.gui.graph_view.edge_focus import EdgeFocus
from tests.gui.graph_tables import layered_table, table_of


def test_an_edge_inside_a_closed_block_is_hidden_until_the_block_opens():
    table = layered_table(1)
    arrangement = Arrangement(table)
    tree = arrangement.tree
    arrangement.close(list(range(tree.root, tree.node_count)))
    rows = [table.op_id.index("linear_0"), table.op_id.index("act_0")]
    focus = EdgeFocus(tree, [tuple(rows)])
    assert focus.hidden(arrangement.scene()) == 1
    arrangement.open(tree.chain(rows[0])[1:])
    opened = arrangement.scene()
    assert focus.hidden(opened) == 0
    assert focus.segments(opened).any()


def test_boxes_without_an_end_of_a_highlighted_edge_are_missed():
    table = table_of([("a", "aten.x.default", ""), ("b", "aten.x.default", ""), ("c", "aten.x.default", "")],
                     edges=[(0, 1), (1, 2)])  # fmt: skip
    arrangement = Arrangement(table)
    focus = EdgeFocus(arrangement.tree, [(0, 1)])
    assert focus.misses(arrangement.scene(), np.array([0, 1, 2])).tolist() == [False, False, True]
