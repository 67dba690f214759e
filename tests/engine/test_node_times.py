"""Timing a graph node by node."""

import time

import pytest
import torch
from torch import nn

from ace_studio.engine.node_times import time_nodes


class Two(nn.Module):
    def forward(self, x):
        big = x @ x
        return big + 1


def test_every_call_is_timed_and_the_large_product_takes_longest():
    graph_module = torch.fx.symbolic_trace(Two())
    found = time_nodes(graph_module, [torch.randn(400, 400)])
    assert set(found) == {node.name for node in graph_module.graph.nodes if node.op == "call_function"}
    assert max(found, key=found.get) == "matmul"
    assert all(time_ms > 0 for time_ms in found.values())


def test_the_median_is_of_the_op_and_not_of_what_is_around_it():
    class Sleeps(nn.Module):
        def forward(self, x):
            return x * 2

    graph_module = torch.fx.symbolic_trace(Sleeps())
    checked = []
    found = time_nodes(graph_module, [torch.zeros(4)], check=lambda: (time.sleep(0.01), checked.append(1)))
    assert found["mul"] < 5
    assert len(checked) >= 3


def test_a_graph_that_writes_into_its_input_gets_copies():
    class Writes(nn.Module):
        def forward(self, x):
            return x.add_(1)

    graph_module = torch.fx.symbolic_trace(Writes())
    x = torch.zeros(2)
    time_nodes(graph_module, [x])
    assert x.sum() == 0


def test_cancelling_stops_between_rounds():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        time_nodes(torch.fx.symbolic_trace(Two()), [torch.zeros(2, 2)], check=stop)
