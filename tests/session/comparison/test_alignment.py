"""A graph of ONNX beside one of torch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ace_studio.session.comparison import alignment
from ace_studio.session.comparison.alignment import aligned_rows
from ace_studio.session.comparison.graphs import OpChange, merged_graph, op_changes
from tests.gui.graph_tables import table_of

TORCH = (
    ("x", "input", "", "s0x3x8x8"),
    ("conv2d", "aten.conv2d.default", "stem", "s0x8x8x8"),
    ("batch_norm", "aten.batch_norm.default", "norm", "s0x8x8x8"),
    ("relu", "aten.relu.default", "", "s0x8x8x8"),
    ("conv2d_1", "aten.conv2d.default", "body", "s0x16x8x8"),
    ("mean", "aten.mean.dim", "", "s0x16"),
    ("linear", "aten.linear.default", "head", "s0x10"),
    ("output", "output", "", ""),
)
ONNX = (
    ("x", "input", "", "batchx3x8x8"),
    ("stem_Conv", "onnx.Conv", "stem", "batchx8x8x8"),
    ("Relu", "onnx.Relu", "", "batchx8x8x8"),
    ("body_Conv", "onnx.Conv", "body", "batchx16x8x8"),
    ("ReduceMean", "onnx.ReduceMean", "", "batchx16"),
    ("head_Gemm", "onnx.Gemm", "head", "batchx10"),
    ("output", "output", "", ""),
)
PAIRS = {"x": "x", "stem_Conv": "conv2d", "Relu": "relu", "body_Conv": "conv2d_1", "ReduceMean": "mean",
         "head_Gemm": "linear", "output": "output"}  # fmt: skip


def table(rows):
    made = table_of([row[:3] for row in rows], edges=[(at, at + 1) for at in range(len(rows) - 1)])
    return replace(made, shape=tuple(row[3] for row in rows), dtype=("float32",) * len(rows))


def nameless(rows):
    """A file whose nodes have no names of modules, and whose batch is fixed."""
    return [(op_id, op, "", shape.replace("batch", "1")) for op_id, op, _, shape in rows]


@pytest.mark.parametrize("rows", [ONNX, nameless(ONNX)])
@pytest.mark.parametrize("is_torch_first", [True, False])
def test_ops_of_onnx_and_of_torch_that_compute_the_same_are_pairs(rows, is_torch_first):
    first, second = table(rows), table(TORCH)
    merged = merged_graph(second, first) if is_torch_first else merged_graph(first, second)
    one, other = merged.graphs
    found = {one.op_id[a]: other.op_id[b] for a, b in merged.rows if a >= 0 and b >= 0}
    assert found == ({there: here for here, there in PAIRS.items()} if is_torch_first else PAIRS)


def test_other_names_of_open_sizes_are_no_difference_but_a_fixed_size_is_one():
    changes = op_changes(merged_graph(table(ONNX), table(TORCH)), ({}, {}))
    assert changes.count(OpChange.SAME) == len(ONNX) and changes.count(OpChange.ONLY_SECOND) == 1
    fixed = op_changes(merged_graph(table(nameless(ONNX)), table(TORCH)), ({}, {}))
    assert fixed.count(OpChange.SHAPE) == len(ONNX) - 1  # all but the output, which has no sizes


def test_the_module_decides_between_ops_that_are_alike():
    twice = [TORCH[0], *((f"conv2d_{name}", "aten.conv2d.default", name, "s0x8x8x8") for name in "abc"), TORCH[-1]]
    once = [ONNX[0], ("Conv_7", "onnx.Conv", "b", "batchx8x8x8"), ONNX[-1]]
    assert aligned_rows(table(once), table(twice)) == {0: 0, 1: 2, 2: 4}


@given(st.lists(st.sampled_from(TORCH), max_size=8), st.lists(st.sampled_from(ONNX), max_size=8))
def test_pairs_rise_in_both_graphs(first, second):
    found = aligned_rows(table(first), table(second))
    assert list(found) == sorted(found)
    assert list(found.values()) == sorted(set(found.values()))


def test_of_graphs_that_are_too_large_the_first_rows_are_aligned(monkeypatch):
    monkeypatch.setattr(alignment, "MOST_PAIRS", 2 * len(TORCH))
    assert aligned_rows(table(ONNX), table(TORCH)) == {0: 0, 1: 1}
