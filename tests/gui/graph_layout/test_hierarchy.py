"""The tree of blocks that a graph's module paths describe."""

import pytest
from msgspec.structs import replace

from ace_studio.gui.graph_layout import Arrangement, build_hierarchy
from ace_studio.gui.graph_layout.folding import MAX_CHILDREN, _range_name
from ace_studio.gui.graph_layout.hierarchy import shorter_names
from ace_studio.records.errors import ErrorCode, Problem
from tests.gui.graph_tables import layered_table, partial_capture, table_of, without_breaks

PROBLEM = Problem(code=ErrorCode.WRONG_CAPTURE, what="it does not match eager")


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


def test_very_deep_module_paths_do_not_break_the_tree():
    deep = ".".join(f"m{level}" for level in range(300))
    rows = [("a", "aten.add.Tensor", deep), ("b", "aten.mul.Tensor", deep), ("c", "aten.neg.default", "")]
    assert Arrangement(table_of(rows, edges=[(0, 1), (1, 2)])).scene().boxes.size == 2


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


def flat_table(rows):
    names = ("conv2d", "relu", "add")
    listed = [("x", "input", ""), *((f"op_{row}", f"aten.{names[row % 3]}.default", "") for row in range(1, rows - 1))]
    return table_of([*listed, ("output", "output", "")], edges=[(row - 1, row) for row in range(1, rows)])


def test_a_long_list_of_ops_is_shown_in_numbered_segments_that_name_what_they_hold():
    tree = build_hierarchy(flat_table(300))
    shown = tree.children(tree.root)
    assert len(shown) <= MAX_CHILDREN
    assert shown[0] == 0, "inputs stay outside of the segments"
    assert tree.names[1].startswith("ops 1-")
    assert set(tree.types[1].split(", ")) == {"conv2d", "relu", "add"}
    assert tree.ops_inside[shown[1:-1]].sum() == 298


@pytest.mark.parametrize("rows", [MAX_CHILDREN + 1, 500, 5000])
def test_no_block_of_a_flat_graph_has_more_children_than_can_be_read(rows):
    tree = build_hierarchy(flat_table(rows))
    assert max(len(tree.children(block)) for block in range(tree.root, tree.node_count)) <= MAX_CHILDREN
    assert tree.rows_inside[tree.root] == rows


def test_segments_end_where_few_values_pass():
    """Groups of ten ops whose first op feeds all of the group: before its first and second op a single value passes."""
    rows = [(f"op_{row}", "aten.add.Tensor", "") for row in range(200)]
    edges = {(row - 1, row) for row in range(1, 200)} | {(row - row % 10, row) for row in range(200) if row % 10}
    tree = build_hierarchy(table_of(rows, edges=sorted(edges)))
    starts = {int(tree.first_row[segment]) % 10 for segment in tree.children(tree.root)}
    assert starts <= {0, 1}


def test_many_identical_layers_are_listed_in_segments_named_after_the_first_and_last():
    tree = build_hierarchy(layered_table(100))
    stack = tree.block_of_path("layers")
    segments = [tree.names[segment - tree.root] for segment in tree.children(stack)]
    assert segments[0].startswith("0 - ")
    assert segments[-1].endswith(" - 99")


def test_a_graph_of_inputs_alone_is_cut_too():
    tree = build_hierarchy(table_of([(f"x{row}", "input", "") for row in range(200)]))
    assert len(tree.children(tree.root)) <= MAX_CHILDREN
