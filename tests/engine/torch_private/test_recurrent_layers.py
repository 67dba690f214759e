"""Layers over time stay one operator each, also in compiled code, which then takes every number of steps."""

import pytest
import torch
from torch import nn

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.torch.inductor import compile_graph
from ace_studio.engine.torch_private.inductor import open_package, package_frozen
from ace_studio.engine.torch_private.recurrent_layers import LAYERS_IN_KERNELS, recurrent_layers_kept_whole
from tests.engine.captured import captured_of

needs_a_compiler = pytest.mark.skipif(not TARGETS["inductor"].available().ok, reason="no C++ compiler here")


class Layers(nn.Module):
    """One layer of each kernel, with the options that have more weights or another name; their results together."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gru = nn.GRU(6, 8, batch_first=True, bidirectional=True)
        self.tanh = nn.RNN(16, 8, batch_first=True, num_layers=2)
        self.relu = nn.RNN(8, 8, batch_first=True, nonlinearity="relu")

    def forward(self, x):
        states = []
        for layer in (self.gru, self.tanh, self.relu):
            x, last = layer(x)
            states.append(last)
        return x, *states


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.head = nn.GRU(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x):
        sequence, last = self.layer(x)
        return self.head(sequence), last


def captured(module):
    return captured_of(module.eval(), torch.randn(1, 5, 6), torch.randn(4, 7, 6))


def assert_same_at_other_lengths(run, module):
    for batch, steps in ((1, 5), (3, 2), (2, 30)):
        x = torch.randn(batch, steps, 6)
        with torch.no_grad():
            for got, expected in zip(run(x), module(x), strict=True):
                torch.testing.assert_close(got, expected)


@needs_a_compiler
def test_compiled_layers_take_every_number_of_steps():
    module = Layers()
    run, nodes = compile_graph(flat_graph(captured(module).program), threads=1, reporter=Reporter())
    assert {str(op) for op in LAYERS_IN_KERNELS} <= {node.target for node in nodes}
    assert_same_at_other_lengths(run, module)


@pytest.mark.slow
@pytest.mark.full
@needs_a_compiler
def test_a_package_takes_every_number_of_steps(tmp_path):
    module, path = Layer(), tmp_path / "layer.pt2"
    program = captured(module).program
    ranges = program.range_constraints
    package_frozen(flat_graph(program), path, before_folding=lambda _: None, notes={}, ranges=ranges)
    assert_same_at_other_lengths(open_package(path)[0], module)


def test_the_shapes_and_strides_of_a_layer_are_those_of_its_kernel():
    x, state = torch.randn(3, 5, 6), torch.zeros(1, 3, 8)
    for kind, op in (("GRU", torch.ops.aten.gru.input), ("RNN", torch.ops.aten.rnn_tanh.input)):
        for first in (True, False):
            layer = getattr(nn, kind)(6, 8)
            arguments = (x if first else x.transpose(0, 1), state, list(layer.parameters()), True, 1, 0.0, False, False)
            real = op(*arguments, first)
            with recurrent_layers_kept_whole(op), torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
                described = op(*arguments, first)
            assert [(one.shape, one.stride()) for one in described] == [(one.shape, one.stride()) for one in real]
