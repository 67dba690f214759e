"""Find the line segments that belong to given edges; one edge has segments in several blocks."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ace_studio.gui.graph_layout import Arrangement
from ace_studio.gui.graph_layout.marking import marked_segments
from tests.gui.graph_tables import tables


@settings(max_examples=40, deadline=None)
@given(tables(), st.data())
def test_an_edge_is_marked_exactly_where_it_is_drawn(table, data):
    arrangement = Arrangement(table)
    blocks = [block for block in arrangement.inner_blocks(arrangement.tree.root) if block != arrangement.tree.root]
    arrangement.open(data.draw(st.lists(st.sampled_from(blocks), unique=True)) if blocks else [])
    scene = arrangement.scene()
    edges = list(zip(table.edge_source, table.edge_target, strict=True))
    every = marked_segments(arrangement.tree, scene, *np.array(edges, dtype=np.int64).reshape(-1, 2).T)
    # All edges together are all lines, and none of them is none.
    assert every.all()
    assert not marked_segments(arrangement.tree, scene, np.zeros(0, np.int64), np.zeros(0, np.int64)).any()
    for source, target in edges[:6]:
        found = marked_segments(arrangement.tree, scene, np.array([source]), np.array([target]))
        is_inside = scene.stands_for[source] == scene.stands_for[target]
        assert bool(found.any()) != bool(is_inside)
        ends = {int(scene.stands_for[source]), int(scene.stands_for[target])}
        touched = {int(n) for n in (*scene.segment_source[found], *scene.segment_target[found]) if n >= 0}
        assert is_inside or ends <= touched
        assert touched <= set(arrangement.tree.chain(source)) | set(arrangement.tree.chain(target))
