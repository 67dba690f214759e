"""The contents of a graph view."""

import numpy as np
import pytest

from ace_studio.gui.graph_layout import Arrangement
from ace_studio.gui.graph_view.picture import EdgeFocus
from tests.gui.graph_tables import layered_table, table_of
from tests.gui.looking import block, picture_of, precision_colouring


def test_a_closed_block_shows_that_a_part_of_it_is_selected(view):
    layers = block(view, "layers")
    plain = picture_of(view)
    view.set_selection(["act_1"])
    share = view.picture.share_of(view.picture.selected, np.array([layers]))
    assert share[0] == pytest.approx(1 / 15)
    assert picture_of(view) != plain


def test_a_block_counts_the_categories_of_its_ops(view):
    view.set_colouring(precision_colouring(view.picture.table))
    counts = view.picture.mix[block(view, "layers") - view.picture.tree.root]
    assert counts.tolist() == [10, 5]


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
