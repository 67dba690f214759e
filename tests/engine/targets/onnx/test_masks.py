"""Edits of an ONNX model that the rewritings of attention share."""

import pytest

pytest.importorskip("onnx")

import onnx
from onnx import helper

from ace_studio.engine.targets.onnx.masks import add_domain, constant, drop_unread


def made_model():
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    nodes = [
        helper.make_node("Relu", ["x"], ["hidden"], name="read"),
        helper.make_node("Add", ["x", "unused"], ["dead"], name="dead"),
        helper.make_node("Neg", ["dead"], ["deader"], name="behind the dead"),
        helper.make_node("Abs", ["hidden"], ["y"], name="last"),
    ]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]))


def test_nodes_and_constants_that_no_result_depends_on_are_dropped_in_place():
    model = made_model()
    constant(model.graph, "unused", 1.0)
    drop_unread(model.graph)
    assert [node.name for node in model.graph.node] == ["read", "last"]
    assert not model.graph.initializer
    onnx.checker.check_model(model)


def test_a_value_that_only_a_branch_reads_is_kept():
    branch = helper.make_graph(
        [helper.make_node("Neg", ["hidden"], ["b"])], "branch", [], [helper.make_empty_tensor_value_info("b")]
    )
    choice = helper.make_node("If", ["is_it"], ["y"], name="choice", then_branch=branch, else_branch=branch)
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["hidden"], name="read"), choice], "g", [x], [y])
    drop_unread(graph)
    assert [node.name for node in graph.node] == ["read", "choice"]


def test_a_constant_is_stored_once():
    graph = made_model().graph
    assert constant(graph, "axes", [0, 1]) == constant(graph, "axes", [0, 1]) == "axes"
    assert [onnx.numpy_helper.to_array(one).tolist() for one in graph.initializer] == [[0, 1]]


def test_a_domain_is_declared_once():
    model = made_model()
    add_domain(model, "com.microsoft")
    add_domain(model, "com.microsoft")
    assert [one.domain for one in model.opset_import] == ["", "com.microsoft"]
