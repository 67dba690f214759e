import operator

import torch
from torch import fx

from ace_studio.engine.sensitivity.local_error import Operand, WatchedOp, constant_names, operands_of, rounded_call
from ace_studio.records.recipes.plan import Precision, Scheme

LINEAR = torch.ops.aten.linear.default
LINEAR_OP = WatchedOp((Operand(0, None, "x"), Operand(1, 0, "weight")))


def linear_graph() -> fx.Graph:
    graph = fx.Graph()
    x = graph.placeholder("x")
    weight = graph.create_node("get_attr", "weight")
    bias = graph.create_node("get_attr", "bias")
    for node, shape in ((x, (3, 4)), (weight, (2, 4)), (bias, (2,))):
        node.meta["val"] = torch.zeros(shape)
    graph.output(graph.call_function(LINEAR, (x, graph.call_function(operator.neg, (weight,)), bias)))
    return graph


def test_what_is_computed_from_stored_tensors_alone_is_constant():
    assert constant_names(fx.GraphModule({"weight": torch.zeros(1), "bias": torch.zeros(1)}, linear_graph())) == {
        "weight",
        "neg",
        "bias",
    }


def test_matrices_are_rounded_and_biases_are_not():
    graph = linear_graph()
    node = next(one for one in graph.nodes if one.target is LINEAR)
    node.args[1].meta["val"] = torch.zeros(2, 4)
    assert operands_of(node, frozenset({"neg", "bias"})) == (Operand(0, None, "x"), Operand(1, 0, "neg"))


def call(precision: Precision, ranges: dict[str, tuple[float, float]]) -> torch.Tensor:
    x, weight = torch.tensor([[0.3, 0.7]]), torch.tensor([[0.11, 0.93]])
    return rounded_call(LINEAR, (x, weight), {}, op=LINEAR_OP, precision=precision, ranges=ranges, scheme=Scheme())


def test_an_activation_without_a_range_stays_float_at_int8_static_and_its_weight_does_not():
    exact = 0.3 * 0.11 + 0.7 * 0.93
    weight_only = float(call(Precision.INT8_STATIC, {}))
    assert 0.0 < abs(weight_only - exact) < 0.01
    assert float(call(Precision.INT8_STATIC, {"x": (0.0, 0.5)})) < weight_only - 0.1


def test_an_op_that_follows_differs_at_int8_static_alone():
    op = WatchedOp((), "relu", follows=True)
    assert op.precisions(list(Precision)) == [Precision.INT8_STATIC]


def test_a_table_differs_at_integer_precisions():
    op = WatchedOp((), table="aten.embedding.default")
    assert op.precisions([Precision.BF16, Precision.INT4_WEIGHT]) == [Precision.INT4_WEIGHT]
