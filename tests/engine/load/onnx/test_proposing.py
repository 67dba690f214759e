"""Inputs are proposed for an ONNX file that it runs with."""

import importlib.util
import time

import numpy as np
import pytest
import torch

if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxruntime") is None:
    pytest.skip("onnx or onnxruntime is not installed", allow_module_level=True)

import onnx
from onnx import TensorProto, helper

from ace_studio.engine.load.onnx import proposing
from ace_studio.engine.load.onnx.proposing import vocabularies
from ace_studio.records.errors import ErrorCode
from tests.engine.load.onnx_samples import numbers
from tests.engine.load.samples import load, problem_of

FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32


def write(path, inputs, nodes, weights=()):
    """A file with these inputs (name -> type and sizes), whose last node gives ``y``."""
    values = [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in inputs.items()]
    out = helper.make_tensor_value_info("y", FLOAT, None)
    named = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in dict(weights).items()]
    graph = helper.make_graph(nodes, "g", values, [out], named)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(model, path / "m.onnx")
    return graph


def node(op, *inputs, to="y", **attributes):
    return helper.make_node(op, inputs, [to], name=f"the_{op}_{to}", **attributes)


def equal_sizes(path):
    write(path, {"a": (FLOAT, ["batch", 3]), "b": (FLOAT, ["b_batch", "m"])}, [node("Concat", "a", "b", axis=1)])


def equal_lengths(path):
    inputs = {"x": (FLOAT, ["batch", "time", 4]), "mask_like": (FLOAT, ["batch", "steps", 1]), "w": (FLOAT, ["q", 4])}
    write(path, inputs, [node("Mul", "x", "mask_like", to="z"), node("Add", "z", "w")])


def multiple(path):
    write(path, {"x": (FLOAT, ["frames", 6])}, [node("Reshape", "x", "shape")], {"shape": [-1, 4, 6]})


def length_below_a_table(path):
    nodes = [
        node("Shape", "x", to="s", start=1, end=2), node("Slice", "table", "zero", "s", to="t"), node("Add", "x", "t")
    ]  # fmt: skip
    write(path, {"x": (FLOAT, ["batch", "time", 4])}, nodes, {"table": numbers(10, 4), "zero": [0]})


def length_of_another(path):
    nodes = [
        node("Shape", "query", to="s", start=1, end=2),
        node("Range", "zero", "end", "one", to="r"),
        node("Gather", "keys", "r", to="k", axis=1),
        node("Add", "k", "query"),
    ]
    nodes.insert(1, node("Squeeze", "s", to="end"))
    inputs = {"query": (FLOAT, ["batch", "asked", 4]), "keys": (FLOAT, ["batch", 12, 4])}
    write(path, inputs, nodes, {"zero": np.array(0), "one": np.array(1)})


def state_of_another_batch(path):
    inputs = {"x": (FLOAT, ["time", "batch", 3]), "h": (FLOAT, [1, "h_batch", 5])}
    weights = {"w": numbers(1, 15, 3), "r": numbers(1, 15, 5)}
    gru = helper.make_node("GRU", ["x", "w", "r", "", "", "h"], ["y"], name="gru", hidden_size=5)
    write(path, inputs, [gru], weights)


def lengths_as_values(path):
    inputs = {"x": (FLOAT, ["time", "batch", 3]), "lengths": (INT32, ["batch"])}
    weights = {"w": numbers(1, 15, 3), "r": numbers(1, 15, 5)}
    gru = helper.make_node("GRU", ["x", "w", "r", "", "lengths"], ["y"], name="gru", hidden_size=5)
    write(path, inputs, [gru], weights)


@pytest.mark.parametrize(
    "write_file",
    [
        equal_sizes, equal_lengths, multiple, length_below_a_table, length_of_another, state_of_another_batch,
        lengths_as_values,
    ],
)  # fmt: skip
def test_proposed_inputs_run_where_sizes_depend_on_each_other(tmp_path, write_file):
    write_file(tmp_path)
    started = time.monotonic()
    loaded = load(tmp_path, "m.onnx")
    for example in loaded.data.examples:
        example.call(loaded.module)
    assert len({example.shapes() for example in loaded.data.examples}) == 2
    assert time.monotonic() - started < proposing.MOST_SECONDS


def test_floats_are_standard_normal(tmp_path):
    write(tmp_path, {"x": (FLOAT, ["batch", 3, 64, 64])}, [node("Relu", "x")])
    x = load(tmp_path, "m.onnx").data.examples[0].args[0]
    assert abs(float(x.mean())) < 0.1 and 0.9 < float(x.std()) < 1.1


def test_where_nothing_runs_the_message_says_what_was_proposed_and_what_to_give(tmp_path):
    nodes = [node("Relu", "other", to="o"), node("Reshape", "x", "shape", to="z"), node("Concat", "z", "o", axis=0)]
    write(tmp_path, {"x": (FLOAT, [1, 7]), "other": (FLOAT, ["n", 5])}, nodes, {"shape": [3, 5]})
    problem = problem_of(tmp_path, "m.onnx")
    assert problem.code is ErrorCode.BAD_INPUT
    assert "proposed" in problem.what and "x 1x7, other 1x5" in problem.why
    assert "the_Reshape_z" in problem.why and "[E:" not in problem.why
    assert "--input x=1x7:float32" in problem.remedy and "other" not in problem.remedy


def test_the_search_ends_after_its_tries_and_its_time(tmp_path, monkeypatch):
    inputs = {f"x{at}": (FLOAT, [f"a{at}", f"b{at}", f"c{at}"]) for at in range(5)}
    write(tmp_path, inputs, [node("Sum", *inputs, to="z"), node("Reshape", "z", "shape")], {"shape": [9973, 9973]})
    calls, depth = [], proposing._Search.depth
    monkeypatch.setattr(proposing, "MOST_TRIES", 10)
    monkeypatch.setattr(proposing._Search, "depth", lambda *args: calls.append(1) or depth(*args))
    problem_of(tmp_path, "m.onnx")
    assert len(calls) == 11  # the first again, for what the runtime said
    monkeypatch.setattr(proposing, "MOST_SECONDS", 0.0)
    calls.clear()
    problem_of(tmp_path, "m.onnx")
    assert len(calls) == 2


def test_rows_of_the_recipe_are_taken_without_a_try(tmp_path, monkeypatch):
    multiple(tmp_path)
    monkeypatch.setattr(proposing._Search, "depth", None)
    (tmp_path / "rows.py").write_text("def rows(): return []", encoding="utf-8")
    assert load(tmp_path, "m.onnx", tracing="rows.py:rows").data.examples == ()


def test_proposed_indices_stay_within_the_table_that_they_index(tmp_path):
    nodes = [helper.make_node("Cast", ["ids"], ["wide"], to=INT64), node("Gather", "table", "wide")]
    graph = write(tmp_path, {"ids": (INT32, ["batch", 4])}, nodes, {"table": numbers(7, 2)})
    assert vocabularies(graph) == {"ids": 7}
    ids = load(tmp_path, "m.onnx").data.examples[0].args[0]
    assert ids.dtype is torch.int32 and int(ids.max()) < 7


def field_numbers(path):
    nodes = [node("Add", "ids", "offsets", to="i"), node("Gather", "table", "i")]
    return write(path, {"ids": (INT64, ["n", 3])}, nodes, {"table": numbers(30, 2), "offsets": [0, 10, 25]})


def ids_from_one(path):
    nodes = [node("Sub", "ids", "one", to="i"), node("Gather", "table", "i")]
    return write(path, {"ids": (INT64, ["n"])}, nodes, {"table": numbers(30, 2), "one": np.array(1)})


def float_ids(path):
    nodes = [helper.make_node("Cast", ["ids"], ["i"], to=INT64), node("Gather", "table", "i")]
    return write(path, {"ids": (FLOAT, ["n", 4])}, nodes, {"table": numbers(7, 2)})


def classes(path):
    nodes = [node("OneHot", "ids", "depth", "off_on", to="o")]
    nodes.append(node("ReduceSum", "o"))
    return write(path, {"ids": (INT64, ["n"])}, nodes, {"depth": np.array(5), "off_on": numbers(2)})


def column(path):
    nodes = [node("Slice", "ids", "zero", "one", "one", to="i"), node("Gather", "table", "i", axis=1)]
    return write(path, {"ids": (INT64, ["n", 3])}, nodes, {"table": numbers(2, 9), "zero": [0], "one": [1]})


def computed_table(path):
    nodes = [node("DequantizeLinear", "stored", "scale", to="table"), node("Gather", "table", "ids")]
    return write(path, {"ids": (INT64, ["n"])}, nodes, {"stored": np.ones((6, 2), np.int8), "scale": np.float32(1)})


def elements_of_another_input(path):
    inputs = {"x": (FLOAT, ["n", 8]), "at": (INT64, ["n", 3])}
    return write(path, inputs, [node("GatherElements", "x", "at", axis=1)])


@pytest.mark.parametrize(
    ("write_file", "below"),
    [
        (field_numbers, {"ids": 5}), (ids_from_one, {"ids": 31}), (float_ids, {"ids": 7}), (classes, {"ids": 5}),
        (column, {"ids": 9}), (computed_table, {"ids": 6}), (elements_of_another_input, {"at": 8}),
    ],
)  # fmt: skip
def test_integers_lie_in_what_they_index(tmp_path, write_file, below):
    assert vocabularies(write_file(tmp_path)) == below
    loaded = load(tmp_path, "m.onnx")
    for example in loaded.data.examples:
        example.call(loaded.module)
        drawn = example.args[-1]
        assert float(drawn.min()) >= 0 and float(drawn.max()) < below[loaded.module.names[-1]]
