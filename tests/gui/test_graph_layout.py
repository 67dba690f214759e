"""The layout of the graph: nothing lost, nothing on top of each other, the same every time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ace_studio.gui.graph_layout import Arrangement, SegmentKind, build_hierarchy
from ace_studio.gui.graph_layout.hierarchy import _range_name, shorter_names
from ace_studio.gui.graph_layout.layered import BlockProblem, Edge, lay_out
from ace_studio.gui.graph_layout.sizes import detail_of, short_dtype, short_op
from ace_studio.records.errors import ErrorCode, Problem
from tests.gui.graph_tables import large_table, layered_table, partial_capture, table_of, tables, without_breaks

PROBLEM = Problem(code=ErrorCode.WRONG_CAPTURE, what="it does not match eager")
relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def blocks_of(tree):
    return list(range(tree.root, tree.node_count))


def overlaps(x, y, width, height):
    """Pairs of rectangles that share more than an edge."""
    wide = np.minimum.outer(x + width, x + width) - np.maximum.outer(x, x)
    tall = np.minimum.outer(y + height, y + height) - np.maximum.outer(y, y)
    return int(np.triu((wide > 1e-6) & (tall > 1e-6), k=1).sum())


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


@st.composite
def problems(draw):
    count = draw(st.integers(1, 14))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] != pair[1])
    edges = draw(st.lists(pairs, max_size=24, unique=True))
    sizes = st.sampled_from([96.0, 144.0, 208.0])
    return BlockProblem(
        widths=tuple(draw(sizes) for _ in range(count)),
        heights=tuple(draw(st.sampled_from([38.0, 46.0, 74.0])) for _ in range(count)),
        edges=tuple(Edge(source=source, target=target) for source, target in edges),
        may_fold=False,
    )


@given(problems())
@relaxed
def test_edges_go_down_except_those_against_execution_order(problem):
    layout = lay_out(problem)
    for edge in problem.edges:
        upper, lower = sorted((edge.source, edge.target))
        assert layout.y[upper] + problem.heights[upper] < layout.y[lower]
        arrow = 1 if edge.source < edge.target else -1
        routes = layout.routes
        mine = (routes.source == upper) & (routes.arrow == arrow)
        mine &= (routes.target == lower) | ((routes.target == -1) & (arrow < 0))
        assert mine.any()


@given(problems())
@relaxed
def test_lines_do_not_pass_through_nodes(problem):
    layout = lay_out(problem)
    widths, heights = np.array(problem.widths), np.array(problem.heights)
    for x0, y0, x1, y1 in layout.routes.ends:
        steps = np.linspace(0.02, 0.98, 25)
        xs, ys = x0 + (x1 - x0) * steps, y0 + (y1 - y0) * steps
        for at in range(len(widths)):
            inside = (xs > layout.x[at] + 0.5) & (xs < layout.x[at] + widths[at] - 0.5)
            inside &= (ys > layout.y[at] + 0.5) & (ys < layout.y[at] + heights[at] - 0.5)
            assert not inside.any()


@given(problems())
@relaxed
def test_every_edge_can_be_followed_from_its_source_to_its_target(problem):
    layout = lay_out(problem)
    routes = layout.routes
    for edge in problem.edges:
        upper, lower = sorted((edge.source, edge.target))
        mine = (routes.source == upper) & ((routes.target == lower) | (routes.target == -1))
        joints = {}
        for x0, y0, x1, y1 in np.round(routes.ends[mine], 3).tolist():
            joints.setdefault((x0, y0), []).append((x1, y1))
        start = (layout.x[upper] + problem.widths[upper] / 2, layout.y[upper] + problem.heights[upper])
        end = (layout.x[lower] + problem.widths[lower] / 2, layout.y[lower])
        reached, waiting = set(), [tuple(np.round(start, 3).tolist())]
        while waiting:
            place = waiting.pop()
            if place not in reached:
                reached.add(place)
                waiting.extend(joints.get(place, ()))
        assert tuple(np.round(end, 3).tolist()) in reached


def test_a_long_chain_is_cut_into_columns_and_none_is_a_hairline():
    count = 120
    problem = BlockProblem(
        widths=(128.0,) * count,
        heights=(46.0,) * count,
        edges=tuple(Edge(source=at, target=at + 1) for at in range(count - 1)),
    )
    layout = lay_out(problem)
    assert layout.columns > 2
    assert 0.8 < layout.width / layout.height < 3.2
    assert overlaps(layout.x, layout.y, np.full(count, 128.0), np.full(count, 46.0)) == 0


def test_a_port_never_gets_a_column_of_its_own():
    edges = [Edge(source=3, target=0), *(Edge(source=at, target=at + 1) for at in range(2)), Edge(source=2, target=4)]
    problem = BlockProblem(
        widths=(200.0,) * 3, heights=(1200.0, 60.0, 900.0), edges=tuple(edges), entering=1, leaving=1
    )
    layout = lay_out(problem)
    assert layout.columns == 2
    assert layout.entering_x[0] == pytest.approx(layout.x[0] + 100.0)


def test_an_edge_too_long_to_draw_becomes_a_stub_at_both_ends():
    count = 6000
    chain = [Edge(source=at, target=at + 1) for at in range(count - 1)]
    far = [Edge(source=at, target=count - 1 - at) for at in range(40)]
    layout = lay_out(BlockProblem(widths=(96.0,) * count, heights=(46.0,) * count, edges=tuple(chain + far)))
    assert (layout.routes.kind == SegmentKind.STUB).sum() % 2 == 0
    assert (layout.routes.kind == SegmentKind.STUB).any()


def test_values_with_many_readers_share_one_line_down_the_ranks():
    readers = 10
    edges = [Edge(source=at, target=at + 1) for at in range(readers)]
    edges += [Edge(source=0, target=at) for at in range(2, readers + 1)]
    layout = lay_out(BlockProblem(widths=(96.0,) * 11, heights=(46.0,) * 11, edges=tuple(edges), may_fold=False))
    shared = layout.routes.ends[(layout.routes.source == 0) & (layout.routes.target == -1)]
    straight = shared[shared[:, 0] == shared[:, 2]]
    assert len(set(np.round(straight[:, 0], 3).tolist())) <= 2


def test_a_module_with_one_op_is_that_op_and_carries_its_name():
    tree = build_hierarchy(table_of([("a", "aten.conv2d.default", "stem.conv1"), ("b", "aten.relu.default", "stem")]))
    assert tree.row_names == ("conv1", "")
    assert [tree.paths[at] for at in range(len(tree.paths))] == ["", "stem"]


def test_a_module_that_only_contains_another_is_merged_with_it():
    rows = [("a", "aten.add.Tensor", "encoder.layer"), ("b", "aten.mul.Tensor", "encoder.layer")]
    tree = build_hierarchy(table_of([*rows, ("c", "aten.relu.default", "")]))
    assert tree.names == ("Net", "encoder.layer")


def test_identical_neighbours_become_one_block_with_their_number():
    tree = build_hierarchy(layered_table(5))
    block = tree.block_of_path("layers")
    assert tree.repeats[block - tree.root] == 5
    assert len(tree.children(block)) == 5


def test_layers_that_differ_are_not_folded():
    tree = build_hierarchy(layered_table(5, distinct=True))
    assert set(tree.repeats) == {0}


def test_a_run_of_identical_layers_among_others_gets_a_block_of_its_own():
    rows = []
    for layer, op in enumerate(("mul", "add", "add", "add")):
        rows += [(f"a{layer}", f"aten.{op}.Tensor", f"m.{layer}"), (f"b{layer}", "aten.relu.default", f"m.{layer}")]
    tree = build_hierarchy(table_of([*rows, ("x", "aten.neg.default", "")]))
    assert tree.block_of_path("m.1-3") is not None


def test_repeated_calls_of_a_module_are_blocks_of_their_own():
    rows = [(f"{call}{at}", f"aten.{op}.Tensor", call) for call in ("m", "m@1") for at, op in enumerate(("add", "mul"))]
    tree = build_hierarchy(table_of(rows, edges=[(0, 1), (1, 2), (2, 3)]))
    assert {"m", "m@1"} <= set(tree.paths)


def test_a_list_whose_modules_run_at_different_times_is_replaced_by_its_modules():
    rows = [("d0", "aten.add.Tensor", "down.0"), ("d1", "aten.mul.Tensor", "down.0")]
    rows += [("p", "aten.max_pool2d.default", "")]
    rows += [("e0", "aten.neg.default", "down.1"), ("e1", "aten.mul.Tensor", "down.1")]
    table = table_of(rows, edges=[(0, 1), (1, 2), (2, 3), (3, 4)], types={"down": "ModuleList"})
    tree = build_hierarchy(table)
    assert tree.names == ("Net", "down.0", "down.1")


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


def test_very_deep_module_paths_do_not_break_the_tree():
    deep = ".".join(f"m{level}" for level in range(300))
    rows = [("a", "aten.add.Tensor", deep), ("b", "aten.mul.Tensor", deep), ("c", "aten.neg.default", "")]
    assert Arrangement(table_of(rows, edges=[(0, 1), (1, 2)])).scene().boxes.size == 2


@pytest.mark.parametrize(
    ("op", "short"),
    [
        ("aten.conv2d.default", "conv2d"),
        ("<built-in function getitem>", "getitem"),
        ("input", "input"),
        ("mylib.scale.default", "mylib.scale.default"),
        ("_operator.getitem", "getitem"),
    ],
)
def test_operators_are_shortened_for_their_boxes(op, short):
    assert short_op(op) == short


def test_shapes_and_types_are_shortened_for_their_boxes():
    assert short_dtype("bfloat16") == "bf16"
    assert detail_of(layered_table(1), 2) == "1×8×4×4 · f32"


# --- a capture in subgraphs ---


def test_subgraphs_are_blocks_of_their_own_with_the_breaks_between_them():
    table, capture = partial_capture(3)
    tree = build_hierarchy(table, subgraphs=capture.pieces)
    names = [
        tree.names[node - tree.root] if node >= tree.root else table.op_id[node] for node in tree.children(tree.root)
    ]
    assert names == ["x", "p0 · stage0", "break_0", "p1 · stage1", "break_1", "p2 · stage2", "output"]
    assert [subgraph for subgraph in tree.subgraphs if subgraph >= 0] == [0, 1, 2]
    assert [tree.ops_inside[tree.root + at] for at, subgraph in enumerate(tree.subgraphs) if subgraph >= 0] == [6, 6, 6]


def test_identical_layers_inside_a_subgraph_are_folded_and_subgraphs_with_breaks_between_are_not():
    table, capture = partial_capture(4, ops=12, layers=4)
    tree = build_hierarchy(table, subgraphs=capture.pieces)
    assert tree.repeats.count(4) == 4
    assert sum(subgraph >= 0 for subgraph in tree.subgraphs) == 4
    assert not tree.repeats[0]


def test_a_subgraph_that_stays_eager_is_not_folded_with_captured_ones():
    whole, capture = without_breaks(*partial_capture(6))
    folded = build_hierarchy(whole, subgraphs=capture.pieces)
    assert folded.repeats.count(6) == 1
    assert folded.names[folded.repeats.index(6)] == "p0-p5 · stage0-stage5"
    broken = tuple(replace(one, error=PROBLEM) if at == 3 else one for at, one in enumerate(capture.pieces))
    assert build_hierarchy(whole, subgraphs=broken).repeats.count(3) == 1


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("layers.0.experts.0", "layers.0.experts.3", "p0-p3 · layers.0.experts.0-3"),
        ("layers.0.mlp", "layers.3.mlp", "p0-p3 · layers.0.mlp-3.mlp"),
        ("stem", "stem", "p0-p3 · stem"),
        ("", "", "p0-p3"),
    ],
)
def test_folded_subgraphs_are_named_after_the_range_of_their_modules(first, last, expected):
    assert _range_name("p0-p3", first, last) == expected


def test_names_of_subgraphs_get_shorter_from_the_left_of_their_module_and_others_stay():
    assert shorter_names("p13 · layers.0.norm") == ("p13 · layers.0.norm", "p13 · 0.norm", "p13 · norm", "p13")
    assert shorter_names("layers.0") == ("layers.0",)
