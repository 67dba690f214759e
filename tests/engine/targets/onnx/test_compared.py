"""What a library makes of a model is taken only where ONNX Runtime computes about the same from it."""

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import torch
from onnx import TensorProto, helper, numpy_helper

from ace_studio.engine.targets.onnx.compared import alike_or_before

FEEDS = [{"x": torch.randn(3, 4, generator=torch.Generator().manual_seed(0))}]


def model(*nodes, opset=13, **weights):
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy"]
    stored = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], stored)
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("elsewhere", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def node(kind, *inputs, **attributes):
    *names, result = inputs
    return helper.make_node(kind, names, [result], **attributes)


def logarithm(epsilon):
    steps = (node("Abs", "x", "a"), node("Add", "a", "epsilon", "b"), node("Log", "b", "y"))
    return model(*steps, epsilon=np.float32(epsilon))


def test_rounding_is_no_difference():
    before = model(node("Mul", "x", "w", "y"), w=np.float32(3))
    changed = model(node("Mul", "x", "w", "y"), w=np.float32(3.001))
    assert alike_or_before(changed, before, FEEDS) is changed


def test_a_number_that_matters_at_silence_alone_is_missed():
    changed = model(node("Abs", "x", "a"), node("Log", "a", "y"))
    assert alike_or_before(changed, before := logarithm(1e-10), FEEDS) is before
    assert alike_or_before(before, changed, FEEDS) is changed  # and the other way round: a number for infinity


@pytest.mark.parametrize(
    "changed",
    [
        model(node("Reshape", "x", "s", "y", allowzero=1), s=np.array([-1, 4])),
        model(node("Reshape", "x", "s", "y"), s=np.array([1, -1, 4])),
        model(node("Neg", "x", "y")),
        model(node("Tanh", "x", "y"), opset=500),
    ],
    ids=["an attribute of a later opset", "another shape", "other numbers", "no such opset"],
)
def test_a_model_that_is_not_valid_or_another_one_is_dropped(changed):
    before = model(node("Reshape", "x", "s", "y"), s=np.array([-1, 4]))
    assert alike_or_before(changed, before, FEEDS) is before


def test_where_the_model_before_does_not_run_nothing_is_known_and_the_new_one_is_taken():
    before, changed = model(node("Another", "x", "y", domain="elsewhere")), model(node("Neg", "x", "y"))
    assert alike_or_before(changed, before, FEEDS) is changed
