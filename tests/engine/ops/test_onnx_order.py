"""Nodes of an ONNX graph are put behind those that they read."""

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from ace_studio.engine.ops.onnx_order import sort_nodes


def graph_of(*nodes):
    return helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])], [])


def node(name, reads, *, inside=None):
    if inside is None:
        return helper.make_node("Sum", reads, [name], name=name)
    return helper.make_node("If", reads, [name], name=name, then_branch=inside, else_branch=inside)


def names(graph):
    return [one.name for one in graph.node]


def test_a_node_comes_behind_what_it_reads_and_the_rest_stays_in_place():
    graph = graph_of(node("first", ["x"]), node("last", ["late"]), node("end", ["last"]), node("late", ["first"]))
    sort_nodes(graph)
    assert names(graph) == ["first", "late", "last", "end"]


def test_what_a_branch_reads_from_outside_counts():
    graph = graph_of(node("branch", ["x"], inside=graph_of(node("inner", ["late"]))), node("late", ["x"]))
    sort_nodes(graph)
    assert names(graph) == ["late", "branch"]


def test_a_circle_stays_as_it_is():
    graph = graph_of(node("one", ["other"]), node("other", ["one"]))
    sort_nodes(graph)
    assert names(graph) == ["one", "other"]
