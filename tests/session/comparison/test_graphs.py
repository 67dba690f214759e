"""Two graphs as one, and what became of each op."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ace_studio.session.comparison.graphs import OpChange, matched_rows, merged_graph, op_changes
from tests.gui.graph_tables import layered_table, table_of

CONV, RELU = "aten.conv2d.default", "aten.relu.default"


def chain(*rows):
    return table_of([("x", "input", ""), *rows], edges=[(at, at + 1) for at in range(len(rows))])


def test_ops_are_matched_by_module_and_operator_whatever_their_ids():
    first = chain(("conv2d", CONV, "a"), ("relu", RELU, "a"))
    second = chain(("pad", "aten.pad.default", "a"), ("conv2d_9", CONV, "a"), ("relu_9", RELU, "a"))
    assert matched_rows(first, second) == {0: 0, 1: 2, 2: 3}


def test_of_several_alike_ops_in_a_module_the_same_id_decides():
    first = chain(("relu", RELU, "a"), ("relu_1", RELU, "a"))
    second = chain(("relu_1", RELU, "a"))
    assert matched_rows(first, second) == {0: 0, 2: 1}


def test_an_op_of_the_first_alone_stands_where_it_ran_and_keeps_its_edges():
    first = chain(("conv2d", CONV, "a"), ("relu", RELU, "a"), ("conv2d_1", CONV, "b"))
    second = chain(("conv2d", CONV, "a"), ("gelu", "aten.gelu.default", "a"), ("conv2d_1", CONV, "b"))
    merged = merged_graph(first, second)
    assert merged.table.op_id == ("x", "conv2d", "relu", "gelu", "conv2d_1")
    named = {(merged.table.op_id[a], merged.table.op_id[b])
             for a, b in zip(merged.table.edge_source, merged.table.edge_target, strict=True)}  # fmt: skip
    assert named == {
        ("x", "conv2d"),
        ("conv2d", "relu"),
        ("relu", "conv2d_1"),
        ("conv2d", "gelu"),
        ("gelu", "conv2d_1"),
    }
    changes = dict(zip(merged.table.op_id, op_changes(merged, ({}, {})), strict=True))
    assert (changes["relu"], changes["gelu"], changes["x"]) == (
        OpChange.ONLY_FIRST, OpChange.ONLY_SECOND, OpChange.SAME,
    )  # fmt: skip
    assert merged.ids(["relu", "conv2d"]) == (("conv2d", "relu"), ("conv2d",))


def test_an_id_that_both_use_for_other_ops_is_given_once():
    first, second = chain(("op", CONV, "a")), chain(("op", RELU, "b"))
    merged = merged_graph(first, second)
    assert sorted(merged.table.op_id) == ["op", "op_in_A", "x"]
    assert merged.first_ids["op"] == "op_in_A"
    assert set(merged.table.module_paths) == {"a", "b"}


def test_shape_and_precision_are_told_apart():
    first = chain(("conv2d", CONV, "a"), ("relu", RELU, "a"))
    second = replace(first, shape=("1x8x4x4", "1x8x4x4", "1x8x2x2"))
    precisions = {"conv2d": "fp32", "relu": "fp32"}, {"conv2d": "int8-static", "relu": "int8-static"}
    changes = op_changes(merged_graph(first, second), precisions)
    assert changes == (OpChange.SAME, OpChange.PRECISION, OpChange.BOTH)


def test_a_fusion_is_no_other_precision_and_what_is_not_reported_does_not_differ():
    graph = chain(("conv2d", CONV, "a"), ("relu", RELU, "a"), ("conv2d_1", CONV, "b"), ("relu_1", RELU, "b"))
    merged = merged_graph(graph, graph)
    first = {"conv2d": "fp32", "relu": "fp32", "conv2d_1": "fused", "relu_1": "fp32"}
    second = {"conv2d": "int8-dynamic", "relu": "fused", "conv2d_1": "fused", "relu_1": "unknown"}
    assert op_changes(merged, (first, second)) == (
        OpChange.SAME, OpChange.PRECISION, OpChange.FUSION, OpChange.SAME, OpChange.SAME,
    )  # fmt: skip
    other_shape = replace(graph, shape=("1x8x4x4", "1x8x4x4", "1x8x2x2", "1x8x4x4", "1x8x4x4"))
    assert op_changes(merged_graph(graph, other_shape), (first, second))[2] is OpChange.SHAPE


@given(st.integers(0, 5), st.integers(0, 5))
def test_a_row_reads_only_rows_before_it_and_every_row_is_there(one, other):
    first, second = layered_table(one), layered_table(other, distinct=True)
    merged = merged_graph(first, second)
    table = merged.table
    assert all(a < b for a, b in zip(table.edge_source, table.edge_target, strict=True))
    assert sorted(row for row, _ in merged.rows if row >= 0) == list(range(len(first)))
    assert sorted(row for _, row in merged.rows if row >= 0) == list(range(len(second)))
    assert len(set(table.op_id)) == len(table) == len(table.kind) == len(table.shape)
    assert len(table.edge_source) == len({*zip(table.edge_source, table.edge_target, strict=True)})


def test_a_graph_beside_itself_is_itself():
    table = layered_table(3)
    merged = merged_graph(table, table)
    assert merged.table.op_id == table.op_id
    assert set(op_changes(merged, ({}, {}))) == {OpChange.SAME}
