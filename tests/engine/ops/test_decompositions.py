from typing import Any

import torch
from torch import fx

from ace_studio.engine.ops.decompositions import leaf_operators


def node_of(target: Any, *values: torch.Tensor) -> fx.Node:
    graph = fx.Graph()
    inputs = []
    for value in values:
        inputs.append(graph.placeholder("x"))
        inputs[-1].meta["val"] = value
    return graph.call_function(target, tuple(inputs))


def test_an_operator_comes_down_to_those_that_its_row_of_the_table_calls():
    silu = torch.ops.aten.silu.default
    table = {silu: lambda x: x * torch.sigmoid(x)}
    leaves = leaf_operators(node_of(silu, torch.ones(2)), table, is_leaf=lambda _: False)
    assert leaves == (torch.ops.aten.sigmoid.default, torch.ops.aten.mul.Tensor)


def test_a_leaf_is_left_as_it_is_although_the_table_has_it():
    silu = torch.ops.aten.silu.default
    outer = torch.ops.aten.relu.default
    table = {outer: silu, silu: lambda x: x * torch.sigmoid(x)}
    assert leaf_operators(node_of(outer, torch.ones(2)), table, is_leaf=lambda op: op is silu) == (silu,)


def test_what_asks_for_numbers_cannot_be_played_without_them():
    relu = torch.ops.aten.relu.default
    table = {relu: lambda x: x * float(x.sum())}
    assert leaf_operators(node_of(relu, torch.ones(2)), table, is_leaf=lambda _: False) is None


def test_a_plain_function_has_no_operators():
    assert leaf_operators(node_of(len, torch.ones(2)), {}, is_leaf=lambda _: False) is None
