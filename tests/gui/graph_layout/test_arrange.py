"""Which blocks are open, the layout of each, and the flat scene that a view draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_studio.gui.graph_layout import Arrangement
from tests.gui.graph_tables import large_table, layered_table, table_of, tables
from tests.gui.laying_out import overlaps, relaxed


def blocks_of(tree):
    return list(range(tree.root, tree.node_count))


@given(tables(), st.data())
@relaxed
def test_every_op_is_in_exactly_one_visible_box_whatever_is_open(table, data):
    arrangement = Arrangement(table)
    tree = arrangement.tree
    for _ in range(3):
        chosen = data.draw(st.lists(st.sampled_from(blocks_of(tree)), max_size=5))
        (arrangement.open if data.draw(st.booleans()) else arrangement.close)(chosen)
        scene = arrangement.scene()
        shown = [row for box in scene.boxes for row in rows_in(tree, int(box))]
        assert sorted(shown) == list(range(len(table)))
        for row in range(len(table)):
            assert scene.stands_for[row] in scene.boxes
            assert int(scene.stands_for[row]) in tree.chain(row)


def rows_in(tree, node):
    if node < tree.root:
        return [node]
    return [row for child in tree.children(node) for row in rows_in(tree, int(child))]


@given(tables(), st.data())
@relaxed
def test_boxes_and_blocks_of_one_parent_never_overlap_and_stay_inside_it(table, data):
    arrangement = Arrangement(table)
    tree = arrangement.tree
    arrangement.open(data.draw(st.lists(st.sampled_from(blocks_of(tree)), max_size=8)))
    scene = arrangement.scene()
    for block in (tree.root, *scene.frames.tolist()):
        inside = tree.children(block)
        assert overlaps(scene.x[inside], scene.y[inside], scene.width[inside], scene.height[inside]) == 0
        assert (scene.x[inside] >= scene.x[block] - 1e-6).all()
        assert (scene.y[inside] >= scene.y[block] - 1e-6).all()
        right, bottom = scene.x[block] + scene.width[block], scene.y[block] + scene.height[block]
        assert (scene.x[inside] + scene.width[inside] <= right + 1e-6).all()
        assert (scene.y[inside] + scene.height[inside] <= bottom + 1e-6).all()


@given(tables())
@relaxed
def test_the_same_graph_is_laid_out_the_same_every_time(table):
    scenes = []
    for _ in range(2):
        arrangement = Arrangement(table)
        arrangement.open(blocks_of(arrangement.tree))
        scenes.append(arrangement.scene())
    for column in ("x", "y", "width", "height", "segments", "segment_source"):
        np.testing.assert_array_equal(getattr(scenes[0], column), getattr(scenes[1], column))


@given(tables())
@relaxed
def test_opening_and_closing_again_restores_the_picture(table):
    arrangement = Arrangement(table)
    before = arrangement.scene()
    blocks = blocks_of(arrangement.tree)
    arrangement.open(blocks)
    arrangement.close(blocks)
    after = arrangement.scene()
    np.testing.assert_array_equal(before.boxes, after.boxes)
    np.testing.assert_array_equal(before.x[before.boxes], after.x[after.boxes])
    np.testing.assert_array_equal(before.segments, after.segments)


def test_closed_blocks_that_feed_each_other_are_drawn_with_one_line_turned():
    rows = [("a", "aten.add.Tensor", "p"), ("b", "aten.mul.Tensor", "q"), ("c", "aten.neg.default", "p")]
    rows += [("d", "aten.neg.default", "q")]
    arrangement = Arrangement(table_of(rows, edges=[(0, 1), (1, 2), (2, 3)]))
    scene = arrangement.scene()
    assert len(scene.boxes) == 2
    assert sorted(set(scene.segment_arrow.tolist()) - {0}) == [-1, 1]


def test_equal_blocks_share_one_layout():
    arrangement = Arrangement(layered_table(12))
    arrangement.open(blocks_of(arrangement.tree))
    assert arrangement.layouts_computed <= 9


def test_opening_a_block_lays_out_only_it_and_its_ancestors():
    arrangement = Arrangement(large_table(3000))
    stage = next(int(c) for c in arrangement.tree.children(arrangement.tree.root) if c >= arrangement.tree.root)
    before = arrangement.layouts_computed
    arrangement.open([stage])
    assert arrangement.layouts_computed - before <= 2


def test_at_first_about_sixty_boxes_are_open_and_never_many_more():
    arrangement = Arrangement(large_table())
    arrangement.open_readably()
    assert 10 <= len(arrangement.scene().boxes) <= 60


def test_in_a_small_window_fewer_blocks_are_open_and_in_a_large_one_more_again():
    arrangement = Arrangement(layered_table(40, distinct=True))
    counts = []
    for width, height in ((9000, 9000), (700, 700), (9000, 9000)):
        arrangement.open_readably(width, height)
        counts.append(len(arrangement.scene().boxes))
    assert counts[0] == counts[2] > 40
    assert 1 < counts[1] <= 15


def test_ports_lead_lines_to_the_frame_of_an_open_block():
    arrangement = Arrangement(layered_table(4))
    tree = arrangement.tree
    block = tree.block_of_path("layers")
    arrangement.open([block])
    scene = arrangement.scene()
    own = scene.segment_block == block
    entering = own & (scene.segment_source == block)
    leaving = own & (scene.segment_target == block)
    assert entering.any()
    assert scene.segments[leaving][:, 3].max() == pytest.approx(scene.y[block] + scene.height[block])


def test_an_empty_graph_and_a_single_op_have_a_layout():
    assert Arrangement(table_of([])).scene().boxes.tolist() == []
    scene = Arrangement(table_of([("only", "aten.relu.default", "")])).scene()
    assert scene.boxes.tolist() == [0]
    assert len(scene.segments) == 0
